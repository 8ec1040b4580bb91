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
/// Goglin and Furmento, "Finding a tradeoff between host interrupt load and MPI latency over
/// Ethernet", 2009, section III-B. Unmarked packets see exactly the timer; a marked one is never
/// later than the timer would have been.
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
    forward_to_timer!(packet_arrived transmit_completed timer_expired interrupt_raised deadline);

    #[inline]
    fn dma_completed(&mut self, now: Instant, descriptor: &Descriptor, pending: u32) -> Interrupt {
        let timer = self.timer.dma_completed(now, descriptor, pending);
        if descriptor.marked { Some(Reason::Mark) } else { timer }
    }

    #[inline]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        let timer = self.timer.host_rearmed(now, unseen);
        if unseen.marked > 0 { Some(Reason::Rearm) } else { timer }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Timeline;
    use super::super::{Delay, Throttle};
    use super::*;
    use crate::time::Duration;

    fn marked() -> Timeline<Marked<Delay>> {
        Timeline::of(Marked::new(Delay::new(Duration::from_micros(75))))
    }

    /// "if Descriptor is Marked then Raise Interrupt"
    #[test]
    fn marked_packet_interrupts_when_its_dma_completes() {
        let mut nic = marked();
        assert_eq!(nic.packet(0), None);
        assert_eq!(nic.completes(10, true, 5), Some(Reason::Mark));
    }

    /// "if Interrupt coalescing timeout expires then Raise Interrupt"
    #[test]
    fn other_packets_wait_for_the_timer() {
        let mut nic = marked();
        nic.packet(0);
        nic.packet(30);
        assert_eq!(nic.expires(), Some((75, Reason::Timer)));
    }

    /// "Reset coalescing timeout": the host that a mark called finds the packets before it, too.
    #[test]
    fn mark_resets_the_timeout() {
        let mut nic = marked();
        nic.packet(0);
        nic.marked(10);
        assert_eq!(nic.host_answers(12), None);
        assert_eq!(nic.expires(), None);
        nic.packet(20);
        assert_eq!(nic.expires(), Some((95, Reason::Timer)));
    }

    #[test]
    fn masked_mark_is_signalled_at_rearm() {
        let mut nic = marked();
        nic.marked(0);
        nic.host_polls();
        assert_eq!(nic.marked(1), None);
        assert_eq!(nic.packet(2), None);
        assert_eq!(nic.host_rearms(3), Some(Reason::Rearm));
    }

    #[test]
    fn mark_cuts_the_gap_of_a_throttle_short_and_starts_the_next() {
        let mut nic = Timeline::of(Marked::new(Throttle::new(Duration::from_micros(125))));
        assert_eq!(nic.packet(0), Some(Reason::Timer));
        nic.host_answers(0);
        assert_eq!(nic.marked(50), Some(Reason::Mark));
        nic.host_answers(50);
        assert_eq!(nic.packet(60), None);
        assert_eq!(nic.expires(), Some((175, Reason::Timer)));
    }
}
