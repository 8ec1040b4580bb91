//! Algorithm 1 of the Open-MX paper: "Open-MX coalescing".
//!
//! ```text
//! if a packet arrives then                        the classifier, before moderation:
//!     Create packet Descriptor                    Port::receive
//!     if Packet is Marked then
//!         Mark packet Descriptor
//!     Submit DMA to host memory
//!
//! if a DMA completes then                         dma_completed
//!     Find corresponding packet Descriptor
//!     if Descriptor is Marked then
//!         Raise Interrupt
//!
//! if Interrupt coalescing timeout expires then    timer_expired, which is the timer's
//!     Raise Interrupt
//!     Reset coalescing timeout
//! ```

use super::gap::Gap;
use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// Interrupts for marked packets at once, and for all others when the timer underneath does.
///
/// Goglin and Furmento, "Finding a tradeoff between host interrupt load and MPI latency over
/// Ethernet", 2009, section III-B. Unmarked packets see exactly the timer; a marked one is never
/// later than the timer would have been.
///
/// With a least gap, which the paper does not have, a mark that comes too soon after an interrupt
/// waits until the gap is over: in a stream of marked packets one interrupt serves many, and a lone
/// one does not wait.
#[derive(Clone, Debug)]
pub struct Marked<T> {
    timer: T,
    gap: Gap,
}

impl<T> Marked<T> {
    /// Adds the marks to `timer`; a mark interrupts at least `gap` after the interrupt before.
    #[must_use]
    pub fn new(timer: T, gap: Duration) -> Self {
        Self { timer, gap: Gap::new(gap) }
    }
}

impl<T: Moderator> Moderator for Marked<T> {
    forward_moderator!(timer: chosen packet_arrived transmit_completed);

    #[inline]
    fn dma_completed(&mut self, now: Instant, descriptor: &Descriptor, pending: u32) -> Interrupt {
        if descriptor.marked && self.gap.allows(now) {
            // `interrupt_raised` passes the interrupt, for this packet as well, to the timer.
            return Some(Reason::Mark);
        }
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
        if unseen.marked > 0 && self.gap.allows(now) { Some(Reason::Rearm) } else { timer }
    }

    #[inline]
    fn interrupt_raised(&mut self, now: Instant) {
        self.gap.interrupt_raised(now);
        self.timer.interrupt_raised(now);
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.gap.or(self.timer.deadline())
    }
}
