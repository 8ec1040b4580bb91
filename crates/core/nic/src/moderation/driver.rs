//! What a driver says: the device's own registers.

use super::{Interrupt, Moderator, Unseen};
use crate::descriptor::Descriptor;
use crate::time::Instant;

/// Never interrupts by itself.
///
/// For a device with moderation registers of its own, which its driver writes: the device decides,
/// and [`Queue::interrupt`](crate::queue::Queue::interrupt) tells the queue. A setting may add to
/// that: under `marked+driver`, marks interrupt at once and everything else as the driver says.
#[derive(Clone, Debug, Default)]
pub struct Driver;

impl Moderator for Driver {
    #[inline]
    fn dma_completed(&mut self, _: Instant, _: &Descriptor, _: u32) -> Interrupt {
        None
    }

    #[inline]
    fn transmit_completed(&mut self, _: Instant) -> Interrupt {
        None
    }

    #[inline]
    fn timer_expired(&mut self, _: Instant) -> Interrupt {
        None
    }

    #[inline]
    fn host_rearmed(&mut self, _: Instant, _: &Unseen) -> Interrupt {
        None
    }

    #[inline]
    fn interrupt_raised(&mut self, _: Instant) {}

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        None
    }
}
