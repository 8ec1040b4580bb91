//! Algorithm 2 of the Open-MX paper: "Stream coalescing".
//!
//! ```text
//! if a DMA completes then                         dma_completed
//!     Find corresponding packet Descriptor
//!     if no other DMA is pending then
//!         if Descriptor is Marked or DeferredInterrupt is set then
//!             Raise Interrupt
//!             Clear DeferredInterrupt             interrupt_raised
//!     else if Descriptor is Marked then
//!         Set DeferredInterrupt
//!
//! if Interrupt coalescing timeout expires then    timer_expired, which is the timer's
//!     Raise Interrupt
//!     Clear DeferredInterrupt                     interrupt_raised
//!     Reset coalescing timeout
//! ```

use super::gap::Gap;
use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// As [`Marked`](super::Marked), but a mark waits for the DMAs that are already pending behind it.
///
/// It looks exactly as far ahead as DMAs take, so a burst of marked packets costs one interrupt,
/// and a fragment that was overtaken by the marked one is still signalled with it. In a very long
/// stream the timer bounds the wait.
///
/// With a least gap, which the paper does not have, a mark interrupts as soon as no DMA is pending
/// and the gap is over.
#[derive(Clone, Debug)]
pub struct Stream<T> {
    timer: T,
    gap: Gap,
    deferred_interrupt: bool,
}

impl<T> Stream<T> {
    /// Adds the marks, deferred to the end of a stream, to `timer`; a mark interrupts at least
    /// `gap` after the interrupt before.
    #[must_use]
    pub fn new(timer: T, gap: Duration) -> Self {
        Self { timer, gap: Gap::new(gap), deferred_interrupt: false }
    }
}

impl<T: Moderator> Moderator for Stream<T> {
    forward_moderator!(timer: chosen transmit_completed);

    #[inline]
    fn packet_arrived(&mut self, now: Instant, descriptor: &Descriptor) {
        // The mark that waits for the gap has a DMA behind it again.
        self.gap.forget();
        self.timer.packet_arrived(now, descriptor);
    }

    #[inline]
    fn dma_completed(&mut self, now: Instant, descriptor: &Descriptor, pending: u32) -> Interrupt {
        if pending == 0 && (self.deferred_interrupt || descriptor.marked) && self.gap.allows(now) {
            // `interrupt_raised` passes the interrupt, for this packet as well, to the timer.
            return Some(if self.deferred_interrupt { Reason::StreamEnd } else { Reason::Mark });
        }
        self.deferred_interrupt |= descriptor.marked;
        self.timer.dma_completed(now, descriptor, pending)
    }

    #[inline]
    fn timer_expired(&mut self, now: Instant) -> Interrupt {
        if self.gap.is_over(now) { Some(Reason::Mark) } else { self.timer.timer_expired(now) }
    }

    #[inline]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        let timer = self.timer.host_rearmed(now, unseen);
        self.gap.forget();
        self.deferred_interrupt = unseen.marked > 0;
        let ended = unseen.marked > 0 && unseen.dma_pending == 0;
        if ended && self.gap.allows(now) { Some(Reason::Rearm) } else { timer }
    }

    #[inline]
    fn interrupt_raised(&mut self, now: Instant) {
        self.deferred_interrupt = false;
        self.gap.interrupt_raised(now);
        self.timer.interrupt_raised(now);
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.gap.or(self.timer.deadline())
    }
}
