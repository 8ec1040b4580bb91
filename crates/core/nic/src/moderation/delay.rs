//! A delay after the first packet: the coalescing of myri10ge, stmmac and ENA.

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// The timer starts at the first packet that was not signalled to the host.
///
/// A lone packet always waits the whole delay. This is "Timeout" in the Open-MX paper (75 us on
/// Myri-10G), and the `rx-usecs: 393` of the Odroid C2.
#[derive(Clone, Debug)]
pub struct Delay {
    delay: Duration,
    expires: Option<Instant>,
}

impl Delay {
    /// Holds the first packet for `delay`, and whatever follows it until then.
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        Self { delay, expires: None }
    }

    /// Changes the delay. A timer that already runs keeps its deadline.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    fn start(&mut self, now: Instant) -> Interrupt {
        if self.delay == Duration::ZERO {
            return Some(Reason::Timer);
        }
        self.expires.get_or_insert(now + self.delay);
        None
    }
}

impl Moderator for Delay {
    #[inline]
    fn dma_completed(&mut self, now: Instant, _: &Descriptor, _: u32) -> Interrupt {
        self.start(now)
    }

    #[inline]
    fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        self.start(now)
    }

    #[inline]
    fn timer_expired(&mut self, _: Instant) -> Interrupt {
        self.expires.take().map(|_| Reason::Timer)
    }

    #[inline]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        self.expires = unseen.oldest.map(|completed| completed + self.delay);
        self.expires.filter(|&expires| expires <= now).map(|_| Reason::Rearm)
    }

    #[inline]
    fn interrupt_raised(&mut self, _: Instant) {
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

    fn delay(micros: u64) -> Timeline<Delay> {
        Timeline::of(Delay::new(Duration::from_micros(micros)))
    }

    #[test]
    fn timer_starts_at_the_first_packet_that_was_not_signalled() {
        let mut nic = delay(75);
        assert_eq!(nic.packet(10), None);
        assert_eq!(nic.packet(60), None);
        assert_eq!(nic.expires(), Some((85, Reason::Timer)));
        assert_eq!(nic.host_answers(90), None);
        assert_eq!(nic.packet(100), None);
        assert_eq!(nic.expires(), Some((175, Reason::Timer)));
    }

    #[test]
    fn silence_has_no_deadline() {
        let mut nic = delay(75);
        assert_eq!(nic.expires(), None);
        nic.packet(0);
        nic.expires();
        nic.host_answers(80);
        assert_eq!(nic.expires(), None);
    }

    #[test]
    fn packet_that_the_last_poll_missed_has_waited_since_its_dma() {
        let mut nic = delay(75);
        nic.packet(0);
        nic.expires();
        nic.host_polls();
        assert_eq!(nic.packet(80), None);
        assert_eq!(nic.host_rearms(100), None);
        assert_eq!(nic.expires(), Some((155, Reason::Timer)));
    }

    #[test]
    fn host_that_rearms_late_is_interrupted_at_once() {
        let mut nic = delay(75);
        nic.packet(0);
        nic.expires();
        nic.host_polls();
        nic.packet(80);
        assert_eq!(nic.host_rearms(155), Some(Reason::Rearm));
    }

    #[test]
    fn no_delay_is_no_delay() {
        let mut nic = delay(0);
        assert_eq!(nic.packet(5), Some(Reason::Timer));
        nic.host_polls();
        assert_eq!(nic.packet(6), None);
        assert_eq!(nic.host_rearms(6), Some(Reason::Rearm));
    }

    #[test]
    fn transmission_starts_the_timer_too() {
        let mut nic = delay(75);
        nic.transmitted(10);
        nic.packet(30);
        assert_eq!(nic.expires(), Some((85, Reason::Timer)));
    }
}
