//! A minimum gap between interrupts: Intel's interrupt throttle rate (ITR).

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// At least `gap` passes between two interrupts; a packet after a longer silence is signalled at
/// once.
///
/// The ITR of e1000, igb and ixgbe. A round trip that is shorter than the gap takes exactly the
/// gap: 8000 a second at 125 us, the number that gave the e1000 of the seed article away.
#[derive(Clone, Debug)]
pub struct Throttle {
    gap: Duration,
    last_interrupt: Option<Instant>,
    expires: Option<Instant>,
}

impl Throttle {
    /// Keeps interrupts at least `gap` apart.
    #[must_use]
    pub fn new(gap: Duration) -> Self {
        Self { gap, last_interrupt: None, expires: None }
    }

    /// The shortest time between two interrupts.
    #[must_use]
    pub const fn gap(&self) -> Duration {
        self.gap
    }

    /// Changes the gap; it counts from the last interrupt. A timer that already runs keeps its
    /// deadline.
    pub fn set_gap(&mut self, gap: Duration) {
        self.gap = gap;
    }

    /// There is something to signal to the host: now, or as soon as the gap has passed.
    fn wanted(&mut self, now: Instant, immediately: Reason) -> Interrupt {
        match self.last_interrupt.map(|last| last + self.gap) {
            Some(allowed) if allowed > now => {
                self.expires = Some(allowed);
                None
            }
            _ => Some(immediately),
        }
    }
}

impl Moderator for Throttle {
    #[inline]
    fn dma_completed(&mut self, now: Instant, _: &Descriptor, _: u32) -> Interrupt {
        self.wanted(now, Reason::Timer)
    }

    #[inline]
    fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        self.wanted(now, Reason::Timer)
    }

    #[inline]
    fn timer_expired(&mut self, _: Instant) -> Interrupt {
        self.expires.take().map(|_| Reason::Timer)
    }

    #[inline]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        self.expires = None;
        unseen.oldest.and_then(|_| self.wanted(now, Reason::Rearm))
    }

    #[inline]
    fn interrupt_raised(&mut self, now: Instant) {
        self.last_interrupt = Some(now);
        self.expires = None;
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.expires
    }
}
