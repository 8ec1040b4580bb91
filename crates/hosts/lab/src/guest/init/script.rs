//! Orders that are carried out when the guest's own clock says so.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::guest::protocol::TimedCommand;

pub(super) struct Script {
    cues: VecDeque<TimedCommand>,
    timer: OwnedFd,
}

impl Script {
    pub(super) fn new(mut cues: Vec<TimedCommand>) -> io::Result<Self> {
        // Stable: what is due at the same moment stays in order.
        cues.sort_by_key(|cue| cue.at_us);
        // Unlike a timeout, a timer has no slack.
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let script = Self { cues: cues.into(), timer };
        script.set_timer()?;
        Ok(script)
    }

    pub(super) fn is_over(&self) -> bool {
        self.cues.is_empty()
    }

    /// Readable when a cue is due.
    pub(super) fn timer(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_over()).then(|| self.timer.as_fd())
    }

    pub(super) fn due(&mut self) -> io::Result<Vec<TimedCommand>> {
        let now = clock_gettime(ClockId::Monotonic);
        let is_due = |cue: &TimedCommand| {
            let at = moment(cue);
            (at.tv_sec, at.tv_nsec) <= (now.tv_sec, now.tv_nsec)
        };
        let count = self.cues.iter().take_while(|cue| is_due(cue)).count();
        let due = self.cues.drain(..count).collect();
        self.set_timer()?;
        Ok(due)
    }

    /// Setting a timer also takes back that it has run out.
    fn set_timer(&self) -> io::Result<()> {
        let Some(next) = self.cues.front() else { return Ok(()) };
        let mut moment = moment(next);
        if (moment.tv_sec, moment.tv_nsec) == (0, 0) {
            // Zero would stop the timer.
            moment.tv_nsec = 1;
        }
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: moment };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }
}

fn moment(cue: &TimedCommand) -> Timespec {
    let since_boot = Duration::from_micros(cue.at_us);
    Timespec::try_from(since_boot).expect("microseconds in 64 bits fit")
}
