//! The device's own registers, which its driver writes.

use super::{Interrupt, Moderator, Unseen};
use crate::descriptor::Descriptor;
use crate::time::Instant;

/// Never interrupts by itself.
///
/// For a device with moderation registers of its own, which its driver writes: the device decides,
/// and calls [`Queue::interrupt`](crate::queue::Queue::interrupt). A setting may add to that: under
/// `marked+driver`, marks interrupt at once and everything else as the registers say.
#[derive(Clone, Debug, Default)]
pub struct Driver;

impl Moderator for Driver {
    #[inline]
    fn dma_completed(&mut self, _: Instant, _: &Descriptor, _: u32) -> Interrupt {
        None
    }

    #[inline]
    fn host_rearmed(&mut self, _: Instant, _: &Unseen) -> Interrupt {
        None
    }
}
