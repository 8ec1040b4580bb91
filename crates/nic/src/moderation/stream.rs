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

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::Instant;

/// As [`Marked`](super::Marked), but a mark waits for the DMAs that are already pending behind it.
///
/// It looks exactly as far ahead as DMAs take, so a burst of marked packets costs one interrupt, and a fragment that
/// was overtaken by the marked one is still told of with it. In a very long stream the timer bounds the wait.
#[derive(Clone, Debug)]
pub struct Stream<T> {
    timer: T,
    deferred_interrupt: bool,
}

impl<T> Stream<T> {
    /// Adds the marks, deferred to the end of a stream, to `timer`.
    #[must_use]
    pub fn new(timer: T) -> Self {
        Self { timer, deferred_interrupt: false }
    }

    /// The timer underneath.
    #[must_use]
    pub fn timer(&self) -> &T {
        &self.timer
    }
}

impl<T: Moderator> Moderator for Stream<T> {
    fn packet_arrived(&mut self, now: Instant, descriptor: &Descriptor) {
        self.timer.packet_arrived(now, descriptor);
    }

    fn dma_completed(&mut self, now: Instant, descriptor: &Descriptor, pending: u32) -> Interrupt {
        let timer = self.timer.dma_completed(now, descriptor, pending);
        if pending == 0 {
            if self.deferred_interrupt {
                return Some(Reason::StreamEnd);
            }
            if descriptor.marked {
                return Some(Reason::Mark);
            }
        } else if descriptor.marked {
            self.deferred_interrupt = true;
        }
        timer
    }

    fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        self.timer.transmit_completed(now)
    }

    fn timer_expired(&mut self, now: Instant) -> Interrupt {
        self.timer.timer_expired(now)
    }

    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        let timer = self.timer.host_rearmed(now, unseen);
        self.deferred_interrupt = unseen.marked > 0 && unseen.dma_pending > 0;
        if unseen.marked > 0 && unseen.dma_pending == 0 { Some(Reason::Rearm) } else { timer }
    }

    fn interrupt_raised(&mut self, now: Instant) {
        self.deferred_interrupt = false;
        self.timer.interrupt_raised(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }
}
