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
    /// Adds the marks to `timer`.
    #[must_use]
    pub fn new(timer: T) -> Self {
        Self::with_gap(timer, Duration::ZERO)
    }

    /// The same; a mark interrupts at least `gap` after the interrupt before.
    #[must_use]
    pub fn with_gap(timer: T, gap: Duration) -> Self {
        Self { timer, gap: Gap::new(gap) }
    }

    /// The timer underneath.
    #[must_use]
    pub fn timer(&self) -> &T {
        &self.timer
    }
}

impl<T: Moderator> Moderator for Marked<T> {
    forward_to_timer!(packet_arrived transmit_completed);

    #[inline]
    fn dma_completed(&mut self, now: Instant, descriptor: &Descriptor, pending: u32) -> Interrupt {
        if descriptor.marked && self.gap.allows(now) {
            // The timer hears of the interrupt, which is for this packet as well.
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

    fn with_gap(delay: u64, gap: u64) -> Timeline<Marked<Delay>> {
        let micros = Duration::from_micros;
        Timeline::of(Marked::with_gap(Delay::new(micros(delay)), micros(gap)))
    }

    #[test]
    fn marks_of_a_burst_wait_for_the_gap_together() {
        let mut nic = with_gap(75, 20);
        assert_eq!(nic.marked(0), Some(Reason::Mark));
        nic.host_answers(1);
        assert_eq!([nic.marked(3), nic.packet(5), nic.marked(8)], [None; 3]);
        assert_eq!(nic.expires(), Some((20, Reason::Mark)));
        nic.host_answers(21);
        assert_eq!(nic.marked(40), Some(Reason::Mark));
    }

    #[test]
    fn timer_that_is_due_before_the_gap_is_over_is_earlier() {
        let mut nic = with_gap(10, 20);
        nic.marked(0);
        nic.host_answers(1);
        assert_eq!([nic.packet(2), nic.marked(3)], [None; 2]);
        assert_eq!(nic.expires(), Some((12, Reason::Timer)));
        // The gap counts from that interrupt.
        nic.host_answers(12);
        nic.marked(25);
        assert_eq!(nic.expires(), Some((32, Reason::Mark)));
    }

    #[test]
    fn mark_that_the_last_poll_missed_waits_for_the_gap_too() {
        let mut nic = with_gap(75, 20);
        nic.marked(0);
        nic.host_polls();
        nic.marked(4);
        assert_eq!(nic.host_rearms(5), None);
        assert_eq!(nic.expires(), Some((20, Reason::Mark)));
        nic.host_polls();
        nic.marked(38);
        assert_eq!(nic.host_rearms(40), Some(Reason::Rearm));
        // One that a host took unasked waits no more.
        nic.host_answers(41);
        nic.marked(45);
        nic.host_answers(50);
        assert_eq!(nic.expires(), None);
    }
}
