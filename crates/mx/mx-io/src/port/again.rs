//! Trying again later what has failed for lack of descriptors.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{Timespec, epoll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// How long it takes until it is tried again: 10 ms.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// A timer in an epoll, which wakes who sleeps on it. It has its descriptor from the beginning:
/// when it is wanted there are none.
#[derive(Debug)]
pub(super) struct RetryTimer {
    timer: OwnedFd,
}

impl RetryTimer {
    /// A timer that the epoll reports by `token`, once each time that it has run out.
    pub(super) fn new(epoll: &OwnedFd, token: u64) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(epoll, &timer, epoll::EventData::new_u64(token), flags)?;
        Ok(Self { timer })
    }

    pub(super) fn later(&self) {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Itimerspec { it_interval: never, it_value: PAUSE };
        // The timer is one, and the time is in range.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
    }
}
