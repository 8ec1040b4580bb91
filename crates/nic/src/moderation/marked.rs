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

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::Instant;

/// Interrupts for marked packets at once, and for all others when the timer underneath does.
///
/// Goglin and Furmento, "Finding a tradeoff between host interrupt load and MPI latency over Ethernet", 2009,
/// section III-B. Unmarked packets see exactly the timer; a marked one is never later than the timer would have
/// been.
#[derive(Clone, Debug)]
pub struct Marked<T> {
    timer: T,
}

impl<T> Marked<T> {
    /// Adds the marks to `timer`.
    #[must_use]
    pub fn new(timer: T) -> Self {
        Self { timer }
    }

    /// The timer underneath.
    #[must_use]
    pub fn timer(&self) -> &T {
        &self.timer
    }
}

impl<T: Moderator> Moderator for Marked<T> {
    fn packet_arrived(&mut self, now: Instant, descriptor: &Descriptor) {
        self.timer.packet_arrived(now, descriptor);
    }

    fn dma_completed(&mut self, now: Instant, descriptor: &Descriptor, pending: u32) -> Interrupt {
        let timer = self.timer.dma_completed(now, descriptor, pending);
        if descriptor.marked { Some(Reason::Mark) } else { timer }
    }

    fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        self.timer.transmit_completed(now)
    }

    fn timer_expired(&mut self, now: Instant) -> Interrupt {
        self.timer.timer_expired(now)
    }

    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        let timer = self.timer.host_rearmed(now, unseen);
        if unseen.marked > 0 { Some(Reason::Rearm) } else { timer }
    }

    fn interrupt_raised(&mut self, now: Instant) {
        self.timer.interrupt_raised(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }
}
