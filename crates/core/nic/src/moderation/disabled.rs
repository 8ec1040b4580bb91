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
    fn timer_expired(&mut self, _: Instant) -> Interrupt {
        None
    }

    #[inline]
    fn host_rearmed(&mut self, _: Instant, unseen: &Unseen) -> Interrupt {
        unseen.oldest.map(|_| Reason::Rearm)
    }

    #[inline]
    fn interrupt_raised(&mut self, _: Instant) {}

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Timeline;
    use super::*;

    #[test]
    fn each_packet_interrupts() {
        let mut nic = Timeline::of(Disabled);
        for at in [0, 1, 50] {
            assert_eq!(nic.packet(at), Some(Reason::Frames));
            assert_eq!(nic.host_answers(at), None);
        }
        assert_eq!(nic.transmitted(60), Some(Reason::Frames));
    }

    #[test]
    fn polling_host_is_not_interrupted_until_it_stops() {
        let mut nic = Timeline::of(Disabled);
        nic.packet(0);
        nic.host_polls();
        assert_eq!(nic.packet(2), None);
        assert_eq!(nic.host_rearms(3), Some(Reason::Rearm));
    }
}
