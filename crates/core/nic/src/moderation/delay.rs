//! A delay after the first packet: the coalescing of myri10ge, stmmac and ENA.

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// The timer starts at the first packet that was not signalled to the host.
///
/// A lone packet always waits the whole delay. This is "Timeout" in the Open-MX paper (75 us on
/// Myri-10G), and the `rx-usecs: 393` of the Odroid C2.
#[derive(Clone, Debug)]
pub struct Delay {
    delay: Duration,
    expires: Option<Instant>,
}

impl Delay {
    /// Holds the first packet for `delay`, and whatever follows it until then.
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        Self { delay, expires: None }
    }

    /// Changes the delay. A timer that already runs keeps its deadline.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    fn start(&mut self, now: Instant) -> Interrupt {
        if self.delay == Duration::ZERO {
            return Some(Reason::Timer);
        }
        self.expires.get_or_insert(now + self.delay);
        None
    }
}

impl Moderator for Delay {
    #[inline]
    fn dma_completed(&mut self, now: Instant, _: &Descriptor, _: u32) -> Interrupt {
        self.start(now)
    }

    #[inline]
    fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        self.start(now)
    }

    #[inline]
    fn timer_expired(&mut self, _: Instant) -> Interrupt {
        self.expires.take().map(|_| Reason::Timer)
    }

    #[inline]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        self.expires = unseen.oldest.map(|completed| completed + self.delay);
        self.expires.filter(|&expires| expires <= now).map(|_| Reason::Rearm)
    }

    #[inline]
    fn interrupt_raised(&mut self, _: Instant) {
        self.expires = None;
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.expires
    }
}
