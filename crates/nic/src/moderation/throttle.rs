//! A minimum gap between interrupts: Intel's interrupt throttle rate (ITR).

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// At least `gap` passes between two interrupts; a packet after a longer silence is told at once.
///
/// The ITR of e1000, igb and ixgbe. A round trip that is shorter than the gap takes exactly the gap: 8000 a second at
/// 125 us, the number that gave the e1000 of the seed article away.
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

    /// The host has something to be told of: now, or as soon as the gap has passed.
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
    fn dma_completed(&mut self, now: Instant, _: &Descriptor, _: u32) -> Interrupt {
        self.wanted(now, Reason::Timer)
    }

    fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        self.wanted(now, Reason::Timer)
    }

    fn timer_expired(&mut self, _: Instant) -> Interrupt {
        self.expires.take().map(|_| Reason::Timer)
    }

    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        self.expires = None;
        unseen.oldest.and_then(|_| self.wanted(now, Reason::Rearm))
    }

    fn interrupt_raised(&mut self, now: Instant) {
        self.last_interrupt = Some(now);
        self.expires = None;
    }

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
    fn packet_after_a_silence_is_told_at_once() {
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

    /// Request and response of a ping-pong whose peer answers 60 us after it was told, on a NIC of e1000's kind.
    fn round_trips(transmit_interrupts: bool) -> [u64; 4] {
        let mut nic = throttle(125);
        let mut sent_at = 1_000;
        nic.packet(990);
        nic.host_answers(990);
        core::array::from_fn(|_| {
            if transmit_interrupts && nic.transmitted(sent_at + 5).is_some() {
                nic.host_answers(sent_at + 5);
            }
            let response = sent_at + 60;
            let (told, _) = match nic.packet(response) {
                Some(reason) => (response, reason),
                None => nic.expires().unwrap(),
            };
            nic.host_answers(told);
            let round_trip = told - sent_at;
            // The host thinks for 130 us before it asks again: longer than the gap.
            sent_at = told + 130;
            round_trip
        })
    }

    /// The two periods of the e1000 seed: the completion of the request takes the interrupt that the response needs.
    #[test]
    fn transmissions_that_share_the_vector_make_the_response_wait() {
        assert_eq!(round_trips(false), [115, 60, 60, 60]);
        assert_eq!(round_trips(true), [115, 130, 130, 130]);
    }
}
