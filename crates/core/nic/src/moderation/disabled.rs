//! No moderation: `rx-usecs 0`.

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::Instant;

/// Interrupts for every packet, as `rx-usecs 0 rx-frames 1` does: lowest latency, most interrupts.
#[derive(Clone, Debug, Default)]
pub struct Disabled;

impl Moderator for Disabled {
    #[inline]
    fn dma_completed(&mut self, _: Instant, _: &Descriptor, _: u32) -> Interrupt {
        Some(Reason::Frames)
    }

    #[inline]
    fn transmit_completed(&mut self, _: Instant) -> Interrupt {
        Some(Reason::Frames)
    }

    #[inline]
    fn host_rearmed(&mut self, _: Instant, unseen: &Unseen) -> Interrupt {
        unseen.oldest.map(|_| Reason::Rearm)
    }
}
