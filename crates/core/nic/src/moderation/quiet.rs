//! A delay that begins anew with each packet, and a bound on that: the receive timers of e1000.
//!
//! ```text
//! packets     ┃   ┃  ┃                 ┃  ┃  ┃  ┃  ┃  ┃  ┃  ┃
//! quiet       └───└──└──────▶          └──└──└──└──└──└──└──└──
//! absolute    └──────────────────────▶ └───────────────▶
//! interrupts                ┃                          ┃
//! ```

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// Interrupts when no packet has come for a while, and at a bound after the first one all the same.
///
/// The packet timer and the absolute timer of e1000 (`RDTR` and `RADV`, Intel's "PCI/PCI-X Family
/// of Gigabit Ethernet Controllers Software Developer's Manual", sections 13.4.30 and 13.4.31;
/// `RxIntDelay` and `RxAbsIntDelay` of the driver), and the CQE mode of mlx5, whose timer begins
/// anew with each completion (`ethtool cqe-mode-rx`).
///
/// A lone packet waits for the quiet time alone. A stream whose packets are closer than that waits
/// for the bound, as under a [`Delay`](super::Delay) of that length. A transmission starts the
/// timers if none runs. What a poll left behind has been quiet since the newest packet of it.
#[derive(Clone, Debug)]
pub struct Quiet {
    quiet: Duration,
    bound: Duration,
    /// The latest moment for the packets that the host does not know of.
    latest: Option<Instant>,
    expires: Option<Instant>,
}

impl Quiet {
    /// Interrupts after `quiet` without a packet, `bound` after the first at the latest.
    #[must_use]
    pub fn new(quiet: Duration, bound: Duration) -> Self {
        Self { quiet, bound, latest: None, expires: None }
    }

    fn restart(&mut self, now: Instant) -> Interrupt {
        // It has been quiet for long enough, and the owner of the deadline is late.
        if self.expires.is_some_and(|expires| expires <= now) {
            return Some(Reason::Timer);
        }
        let latest = *self.latest.get_or_insert(now + self.bound);
        let expires = latest.min(now + self.quiet);
        self.expires = Some(expires);
        (expires <= now).then_some(Reason::Timer)
    }
}

impl Moderator for Quiet {
    #[inline]
    fn dma_completed(&mut self, now: Instant, _: &Descriptor, _: u32) -> Interrupt {
        self.restart(now)
    }

    #[inline]
    fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        if self.expires.is_some() { None } else { self.restart(now) }
    }

    #[inline]
    fn timer_expired(&mut self, _: Instant) -> Interrupt {
        self.latest = None;
        self.expires.take().map(|_| Reason::Timer)
    }

    #[inline]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        self.latest = unseen.oldest.map(|oldest| oldest + self.bound);
        let newest = unseen.newest.or(unseen.oldest);
        self.expires =
            newest.map(|newest| newest + self.quiet).into_iter().chain(self.latest).min();
        self.expires.filter(|&expires| expires <= now).map(|_| Reason::Rearm)
    }

    #[inline]
    fn interrupt_raised(&mut self, _: Instant) {
        (self.latest, self.expires) = (None, None);
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.expires
    }
}
