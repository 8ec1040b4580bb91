//! What a queue must do, said of its history instead of its events.
//!
//! The model keeps no timer, no flag and no count of its own: it remembers what happened, and says
//! from that alone when each rule of the setting in force calls for an interrupt. The earliest call
//! is the next interrupt.

use std::collections::VecDeque;

use nic::moderation::{
    Itr, Marks, Moderation, Moderator as _, Phase, Profile, Reason, Taken, TimerKind, Unseen,
};
use nic::time::{Duration, Instant};

/// A packet that the host has not taken yet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub id: u32,
    pub marked: bool,
    /// When its DMA is due.
    pub due: Instant,
    /// When its DMA completed, if it has.
    pub completed: Option<Instant>,
}

/// A packet in host memory: since when, and is it marked?
type Completion = (Instant, bool);

/// A rule's call for an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub at: Instant,
    pub reason: Reason,
}

/// The history that matters.
#[derive(Clone, Debug)]
pub struct Model {
    pub setting: Moderation,
    /// Since when the setting has been in force.
    pub set_at: Instant,
    /// How far away the first tick of a free-running clock is then.
    pub phase: Phase,
    /// What `adaptive` has picked; the model takes DIM's word for it.
    pub picked: Option<Profile>,
    /// The last interrupt.
    pub interrupted_at: Option<Instant>,
    /// The host has been interrupted and has not re-armed.
    pub masked: bool,
    /// The dynamic throttle, if it is the timer: the model takes its word for the gap.
    pub itr: Option<Itr>,
    /// The lengths of the packets that the host has taken since the last interrupt.
    pub taken: Vec<u32>,
    /// When the host last handed over what its poll had left behind: a re-arm, or a poll or a new
    /// setting while the interrupt was armed.
    pub rearmed_at: Instant,
    /// The first transmission that completed since the last poll.
    pub transmitted_at: Option<Instant>,
    pub packets: VecDeque<Packet>,
}

/// The dynamic throttle of a setting, before anything was decided.
pub fn throttle(setting: Moderation) -> Option<Itr> {
    let TimerKind::Itr(mode) = setting.timer else { return None };
    Some(Itr::new(mode))
}

impl Model {
    pub fn new(setting: Moderation, phase: Phase, now: Instant) -> Self {
        Self {
            setting,
            set_at: now,
            phase,
            picked: None,
            interrupted_at: None,
            masked: false,
            itr: throttle(setting),
            taken: Vec::new(),
            rearmed_at: now,
            transmitted_at: None,
            packets: VecDeque::new(),
        }
    }

    /// DMAs complete in order: those that are due, up to the first that is not.
    pub fn complete(&mut self, now: Instant) {
        let pending = self.packets.iter_mut().filter(|packet| packet.completed.is_none());
        for packet in pending.take_while(|packet| packet.due <= now) {
            packet.completed = Some(now);
        }
    }

    /// The moderator learns what is there, unless the host is polling.
    pub fn hand_over(&mut self, now: Instant) {
        if !self.masked {
            self.rearmed_at = now;
        }
    }

    /// A poll has ended, unless the host goes on polling.
    pub fn poll_ended(&mut self, now: Instant) {
        self.hand_over(now);
        if let Some(itr) = self.itr.as_mut().filter(|_| !self.masked) {
            let mut taken = Taken::default();
            self.taken.iter().for_each(|length| taken.add(*length));
            let unseen = Unseen { taken: Some(taken), ..Unseen::default() };
            let _ = itr.host_rearmed(now, &unseen);
        }
    }

    pub fn backlog(&self) -> usize {
        self.packets.iter().filter(|packet| packet.completed.is_some()).count()
    }

    /// The rules' calls given what has completed; later ones are not known yet.
    pub fn calls(&self) -> Vec<Call> {
        let completed =
            self.packets.iter().filter_map(|p| p.completed.map(|completed| (completed, p.marked)));
        self.calls_for(&completed.collect::<Vec<_>>(), self.packets.len() - self.backlog())
    }

    /// When the next interrupt comes if nothing else arrives and the owner keeps every deadline,
    /// and the reasons that hold at that moment.
    pub fn next_interrupt(&self, now: Instant) -> Option<(Instant, Vec<Reason>)> {
        let mut latest = now;
        let every = self.packets.iter().map(|packet| {
            let completed = packet.completed.unwrap_or_else(|| {
                latest = latest.max(packet.due);
                latest
            });
            (completed, packet.marked)
        });
        let mut calls = self.calls_for(&every.collect::<Vec<_>>(), 0);
        calls.iter_mut().for_each(|call| call.at = call.at.max(now));
        let at = calls.iter().map(|call| call.at).min()?;
        let reasons = calls.iter().filter(|call| call.at == at).map(|call| call.reason);
        Some((at, reasons.collect()))
    }

    /// When the owner must call next: a DMA is due, or the timer.
    pub fn deadline(&self) -> Option<Instant> {
        let dma = self.packets.iter().find(|packet| packet.completed.is_none()).map(|p| p.due);
        let (timer, mark) =
            if self.masked { (None, None) } else { (self.timer(), self.mark_waits_until()) };
        [dma, timer, mark].into_iter().flatten().min()
    }

    /// When the gap before the next mark is over, if there is one.
    fn gap_ends(&self) -> Option<Instant> {
        let gap = Duration::from_micros(self.setting.gap_usecs.into());
        self.interrupted_at.map(|last| last + gap).filter(|_| self.setting.gap_usecs > 0)
    }

    /// When the mark that nothing but the gap holds back interrupts.
    fn mark_waits_until(&self) -> Option<Instant> {
        let ready = match self.setting.marks {
            Marks::Ignored | Marks::Lane => false,
            Marks::Immediate => true,
            Marks::Deferred => self.backlog() == self.packets.len(),
        };
        let marked = self.packets.iter().any(|packet| packet.marked && packet.completed.is_some());
        self.gap_ends().filter(|_| ready && marked)
    }

    /// When the timer calls, given what has completed.
    pub fn timer(&self) -> Option<Instant> {
        let received: Vec<Instant> =
            self.packets.iter().map_while(|packet| packet.completed).collect();
        let oldest = received.iter().copied().chain(self.transmitted_at).min()?;
        Some(self.timer_for(oldest, &received))
    }

    fn calls_for(&self, completed: &[Completion], pending: usize) -> Vec<Call> {
        let mut calls = Vec::new();
        let mut call = |at: Option<Instant>, reason| {
            calls.extend(at.map(|at| Call { at, reason }));
        };
        let first = completed.first().map(|&(at, _)| at);
        let oldest = [first, self.transmitted_at].into_iter().flatten().min();
        let timer = match self.setting.timer {
            TimerKind::Disabled => Reason::Frames,
            _ => Reason::Timer,
        };
        let received: Vec<Instant> = completed.iter().map(|&(at, _)| at).collect();
        let timed = oldest.filter(|_| self.setting.timer != TimerKind::Driver);
        call(timed.map(|oldest| self.timer_for(oldest, &received)), timer);
        let limits = [self.setting.rx_frames, self.picked.map_or(0, |picked| picked.rx_frames)];
        for limit in limits.into_iter().filter(|&limit| limit > 0) {
            call(completed.get(limit as usize - 1).map(|&(at, _)| at), Reason::Frames);
        }
        let gap_ends = self.gap_ends();
        let mut after_gap = |at: Instant, reason| match gap_ends {
            Some(end) if end > at => call(Some(end), Reason::Mark),
            _ => call(Some(at), reason),
        };
        let mut marked = completed.iter().filter(|(_, marked)| *marked).map(|&(at, _)| at);
        match self.setting.marks {
            Marks::Ignored | Marks::Lane => {}
            Marks::Immediate => {
                if let Some(first) = marked.next() {
                    after_gap(first, Reason::Mark);
                }
            }
            Marks::Deferred if pending > 0 => {}
            Marks::Deferred => match (marked.count(), completed.last()) {
                (0, _) | (_, None) => {}
                (1, Some(&(last, true))) => after_gap(last, Reason::Mark),
                (_, Some(&(last, _))) => after_gap(last, Reason::StreamEnd),
            },
        }
        calls
    }

    /// When the timer of the setting calls for what completed first at `oldest`, and for packets
    /// that were `received` at these times.
    fn timer_for(&self, oldest: Instant, received: &[Instant]) -> Instant {
        let usecs = Duration::from_micros(self.setting.rx_usecs.into());
        match self.setting.timer {
            TimerKind::Disabled => oldest,
            TimerKind::Delay => oldest + usecs,
            TimerKind::Throttle => {
                self.interrupted_at.map_or(oldest, |last| oldest.max(last + usecs))
            }
            TimerKind::Itr(_) => {
                let gap = self.itr.as_ref().expect("the harness sets it").gap();
                self.interrupted_at.map_or(oldest, |last| oldest.max(last + gap))
            }
            // Its ticks have no distance.
            TimerKind::Periodic if usecs == Duration::ZERO => oldest,
            TimerKind::Periodic => {
                let first = usecs.as_nanos() * u64::from(self.phase.0) / (1 << 32);
                let mut tick = self.set_at + Duration::from_nanos(first);
                while tick > oldest + usecs {
                    tick = Instant::from_nanos(tick.as_nanos() - usecs.as_nanos());
                }
                while tick <= oldest {
                    tick += usecs;
                }
                tick
            }
            TimerKind::Quiet => {
                let bound = oldest + Duration::from_micros(self.setting.rx_abs_usecs.into());
                // What was there at the re-arm counts as one, whenever it came.
                let (before, after): (Vec<Instant>, Vec<Instant>) =
                    received.iter().partition(|at| **at <= self.rearmed_at);
                let start = before.last().copied().unwrap_or(oldest);
                let end = |begin: Instant| (begin + usecs).min(bound);
                after.into_iter().fold(
                    end(start),
                    |expiry, at| {
                        if at < expiry { end(at) } else { expiry }
                    },
                )
            }
            TimerKind::Adaptive => {
                let picked = self.picked.expect("the harness sets it");
                oldest + Duration::from_micros(picked.rx_usecs.into())
            }
            TimerKind::Driver | TimerKind::Custom(_) => {
                unreachable!("it calls for nothing by itself")
            }
        }
    }
}
