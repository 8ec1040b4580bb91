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
/// It looks exactly as far ahead as DMAs take, so a burst of marked packets costs one interrupt,
/// and a fragment that was overtaken by the marked one is still signalled with it. In a very long
/// stream the timer bounds the wait.
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
    forward_to_timer!(packet_arrived transmit_completed timer_expired deadline);

    #[inline]
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

    #[inline]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        let timer = self.timer.host_rearmed(now, unseen);
        self.deferred_interrupt = unseen.marked > 0 && unseen.dma_pending > 0;
        if unseen.marked > 0 && unseen.dma_pending == 0 { Some(Reason::Rearm) } else { timer }
    }

    #[inline]
    fn interrupt_raised(&mut self, now: Instant) {
        self.deferred_interrupt = false;
        self.timer.interrupt_raised(now);
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
}
