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
    /// Adds the marks, deferred to the end of a stream, to `timer`.
    #[must_use]
    pub fn new(timer: T) -> Self {
        Self::with_gap(timer, Duration::ZERO)
    }

    /// The same; a mark interrupts at least `gap` after the interrupt before.
    #[must_use]
    pub fn with_gap(timer: T, gap: Duration) -> Self {
        Self { timer, gap: Gap::new(gap), deferred_interrupt: false }
    }

    /// The timer underneath.
    #[must_use]
    pub fn timer(&self) -> &T {
        &self.timer
    }
}

impl<T: Moderator> Moderator for Stream<T> {
    forward_to_timer!(transmit_completed);

    #[inline]
    fn packet_arrived(&mut self, now: Instant, descriptor: &Descriptor) {
        // The mark that waits for the gap has a DMA behind it again.
        self.gap.forget();
        self.timer.packet_arrived(now, descriptor);
    }

    #[inline]
    fn dma_completed(&mut self, now: Instant, descriptor: &Descriptor, pending: u32) -> Interrupt {
        if pending == 0 && (self.deferred_interrupt || descriptor.marked) && self.gap.allows(now) {
            // The timer hears of the interrupt, which is for this packet as well.
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

#[cfg(test)]
mod tests {
    use super::super::Delay;
    use super::super::testing::Timeline;
    use super::*;
    use crate::time::Duration;

    fn stream() -> Timeline<Stream<Delay>> {
        Timeline::of(Stream::new(Delay::new(Duration::from_micros(75))))
    }

    /// "if no other DMA is pending then if Descriptor is Marked [...] Raise Interrupt"
    #[test]
    fn lone_marked_packet_interrupts_when_its_dma_completes() {
        let mut nic = stream();
        assert_eq!(nic.packet(0), None);
        assert_eq!(nic.marked(10), Some(Reason::Mark));
    }

    /// "else if Descriptor is Marked then Set DeferredInterrupt", "or DeferredInterrupt is set"
    #[test]
    fn mark_waits_for_the_dmas_behind_it() {
        let mut nic = stream();
        assert_eq!(nic.completes(0, true, 2), None);
        assert_eq!(nic.completes(1, true, 1), None);
        assert_eq!(nic.completes(2, false, 0), Some(Reason::StreamEnd));
    }

    /// "Raise Interrupt, Clear DeferredInterrupt"
    #[test]
    fn end_of_a_stream_clears_the_deferred_interrupt() {
        let mut nic = stream();
        nic.completes(0, true, 1);
        nic.completes(1, false, 0);
        nic.host_answers(2);
        assert_eq!(nic.packet(3), None);
        assert_eq!(nic.expires(), Some((78, Reason::Timer)));
    }

    /// "if Interrupt coalescing timeout expires then Raise Interrupt, Clear DeferredInterrupt"
    #[test]
    fn timer_bounds_a_deferred_mark_and_clears_it() {
        let mut nic = stream();
        assert_eq!(nic.completes(0, true, 9), None);
        assert!((1..75).all(|at| nic.completes(at, false, 9).is_none()));
        assert_eq!(nic.expires(), Some((75, Reason::Timer)));
        nic.host_answers(76);
        assert_eq!(nic.packet(77), None);
        assert_eq!(nic.expires(), Some((152, Reason::Timer)));
    }

    #[test]
    fn unmarked_stream_waits_for_the_timer() {
        let mut nic = stream();
        assert_eq!(nic.completes(0, false, 1), None);
        assert_eq!(nic.completes(1, false, 0), None);
        assert_eq!(nic.expires(), Some((75, Reason::Timer)));
    }

    #[test]
    fn masked_mark_is_signalled_at_rearm_or_deferred_if_dmas_are_pending() {
        let mut nic = stream();
        nic.marked(0);
        nic.host_polls();
        nic.completes(1, true, 1);
        assert_eq!(nic.host_rearms(2), None);
        assert_eq!(nic.completes(3, false, 0), Some(Reason::StreamEnd));
        nic.host_polls();
        nic.marked(4);
        assert_eq!(nic.host_rearms(5), Some(Reason::Rearm));
    }

    #[test]
    fn mark_waits_for_the_gap_and_for_the_dmas_behind_it() {
        let micros = Duration::from_micros;
        let mut nic = Timeline::of(Stream::with_gap(Delay::new(micros(75)), micros(20)));
        assert_eq!(nic.marked(0), Some(Reason::Mark));
        nic.host_answers(1);
        assert_eq!(nic.marked(5), None);
        assert_eq!(nic.expires(), Some((20, Reason::Mark)));
        nic.host_answers(20);
        // A frame on its way when the gap is over: both are signalled when its DMA completes.
        assert_eq!(nic.completes(25, true, 1), None);
        assert_eq!(nic.completes(41, false, 0), Some(Reason::StreamEnd));
        nic.host_answers(41);
        assert_eq!(nic.completes(50, true, 0), None);
        nic.arrives(55);
        assert_eq!(nic.expires(), Some((125, Reason::Timer)));
    }
}
