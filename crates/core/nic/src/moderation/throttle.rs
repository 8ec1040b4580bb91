//! A minimum gap between interrupts: Intel's interrupt throttle rate (ITR).

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// At least `gap` passes between two interrupts; a packet after a longer silence is signalled at
/// once.
///
/// The ITR of e1000, igb and ixgbe. A round trip that is shorter than the gap takes exactly the
/// gap: 8000 a second at 125 us, the number that gave the e1000 of the seed article away.
#[derive(Clone, Debug)]
pub struct Throttle {
    gap: Duration,
    last_interrupt: Option<Instant>,
    expires: Option<Instant>,
}

impl Throttle {
    /// Keeps interrupts at least `gap` apart.
    #[must_use]
    pub fn new(gap: Duration) -> Self {
        Self { gap, last_interrupt: None, expires: None }
    }

    /// The gap.
    #[must_use]
    pub const fn gap(&self) -> Duration {
        self.gap
    }

    /// Changes the gap; it counts from the last interrupt. A timer that already runs keeps its
    /// deadline.
    pub fn set_gap(&mut self, gap: Duration) {
        self.gap = gap;
    }

    /// There is something to signal to the host: now, or as soon as the gap has passed.
    fn wanted(&mut self, now: Instant, immediately: Reason) -> Interrupt {
        match self.last_interrupt.map(|last| last + self.gap) {
            Some(allowed) if allowed > now => {
                self.expires = Some(allowed);
                None
            }
            _ => Some(immediately),
        }
    }
}

impl Moderator for Throttle {
    #[inline]
    fn dma_completed(&mut self, now: Instant, _: &Descriptor, _: u32) -> Interrupt {
        self.wanted(now, Reason::Timer)
    }

    #[inline]
    fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        self.wanted(now, Reason::Timer)
    }

    #[inline]
    fn timer_expired(&mut self, _: Instant) -> Interrupt {
        self.expires.take().map(|_| Reason::Timer)
    }

    #[inline]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        self.expires = None;
        unseen.oldest.and_then(|_| self.wanted(now, Reason::Rearm))
    }

    #[inline]
    fn interrupt_raised(&mut self, now: Instant) {
        self.last_interrupt = Some(now);
        self.expires = None;
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.expires
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Timeline;
    use super::*;

    fn throttle(micros: u64) -> Timeline<Throttle> {
        Timeline::of(Throttle::new(Duration::from_micros(micros)))
    }

    #[test]
    fn packet_after_a_silence_is_signalled_at_once() {
        let mut nic = throttle(125);
        assert_eq!(nic.packet(0), Some(Reason::Timer));
        nic.host_answers(0);
        assert_eq!(nic.packet(125), Some(Reason::Timer));
        nic.host_answers(126);
        assert_eq!(nic.packet(1_000), Some(Reason::Timer));
    }

    #[test]
    fn packet_within_the_gap_waits_for_exactly_the_gap() {
        let mut nic = throttle(125);
        nic.packet(0);
        nic.host_answers(1);
        assert_eq!(nic.packet(20), None);
        assert_eq!(nic.packet(124), None);
        assert_eq!(nic.expires(), Some((125, Reason::Timer)));
        nic.host_answers(126);
        assert_eq!(nic.packet(130), None);
        assert_eq!(nic.expires(), Some((250, Reason::Timer)));
    }

    #[test]
    fn gap_is_between_interrupts_and_not_after_the_poll() {
        let mut nic = throttle(125);
        nic.packet(0);
        nic.host_polls();
        nic.packet(100);
        assert_eq!(nic.host_rearms(110), None);
        assert_eq!(nic.expires(), Some((125, Reason::Timer)));
        nic.host_polls();
        nic.packet(200);
        assert_eq!(nic.host_rearms(250), Some(Reason::Rearm));
    }

    /// The time between receptions, for a host that sends as soon as it receives and whose
    /// response comes `response` us after.
    fn between_receptions(response: u64, transmit_interrupts: bool) -> u64 {
        let mut nic = throttle(125);
        let mut received = 1_000;
        nic.packet(received);
        nic.host_answers(received);
        for _ in 0..3 {
            let arrives = received + response;
            if transmit_interrupts {
                assert_eq!(nic.transmitted(received + 5), None);
            }
            if transmit_interrupts && received + 125 < arrives {
                let (at, _) = nic.expires().unwrap();
                nic.host_answers(at);
            }
            let at_once = nic.packet(arrives);
            let interrupted_at = at_once.map_or_else(|| nic.expires().unwrap().0, |_| arrives);
            nic.host_answers(interrupted_at);
            received = interrupted_at;
        }
        (received - 1_000) / 3
    }

    /// 8000 round trips a second, or sometimes 4000: the e1000 of the seed article. "This causes
    /// two interrupt timer periods to elapse between message receptions: one for the transmit
    /// interrupt, and another for the receive interrupt."
    #[test]
    fn transmissions_that_share_the_vector_cost_a_second_period() {
        assert_eq!(between_receptions(60, false), 125);
        assert_eq!(between_receptions(60, true), 125);
        assert_eq!(between_receptions(130, false), 130);
        assert_eq!(between_receptions(130, true), 250);
    }
}
