//! A free-running tick: what the numbers of the bge seed fit.

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// How far away the first tick of a free-running clock is when it starts: a part of its period, in
/// units of 2^-32. Of 0, the default, it is a whole period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phase(pub u32);

impl Phase {
    /// This part of `period`, rounded down to nanoseconds.
    #[must_use]
    pub fn of(self, period: Duration) -> Duration {
        let part = (u128::from(period.as_nanos()) * u128::from(self.0)) >> 32;
        // Less than the period, which fits.
        Duration::from_nanos(part as u64)
    }
}

/// Interrupts only at the ticks of a clock of its own, and only when there is something to tell.
///
/// A packet waits anything from nothing to a whole period, so the mean moves by half the period and
/// the minimum not at all: `bge_rx_ticks_norm` 128 against 8 moved a mean of 251 us to 182 us and
/// left the minimum at 90 us.
///
/// Such a clock runs whatever else happens, so where it stands when traffic begins is chance: its
/// [`Phase`].
#[derive(Clone, Debug)]
pub struct Periodic {
    period: Duration,
    started: Instant,
    expires: Option<Instant>,
}

impl Periodic {
    /// Ticks every `period`, and one of its ticks is at `started`. A period of zero ticks always.
    #[must_use]
    pub fn new(period: Duration, started: Instant) -> Self {
        Self { period, started, expires: None }
    }

    /// The first tick later than `moment`.
    fn tick_after(&self, moment: Instant) -> Instant {
        let period = self.period.as_nanos();
        if period == 0 {
            return moment;
        }
        if moment < self.started {
            let ticks = (self.started.since(moment).as_nanos() - 1) / period;
            return Instant::from_nanos(self.started.as_nanos() - ticks * period);
        }
        let ticks = moment.since(self.started).as_nanos() / period + 1;
        self.started + Duration::from_nanos(ticks.saturating_mul(period))
    }

    fn wanted(&mut self, completed: Instant, now: Instant, immediately: Reason) -> Interrupt {
        let tick = *self.expires.get_or_insert(self.tick_after(completed));
        (tick <= now).then_some(immediately)
    }
}

impl Moderator for Periodic {
    #[inline]
    fn dma_completed(&mut self, now: Instant, _: &Descriptor, _: u32) -> Interrupt {
        self.wanted(now, now, Reason::Timer)
    }

    #[inline]
    fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        self.wanted(now, now, Reason::Timer)
    }

    #[inline]
    fn timer_expired(&mut self, _: Instant) -> Interrupt {
        self.expires.take().map(|_| Reason::Timer)
    }

    #[inline]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        self.expires = None;
        unseen.oldest.and_then(|completed| self.wanted(completed, now, Reason::Rearm))
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

    fn periodic(period: u64, started: u64) -> Timeline<Periodic> {
        let period = Duration::from_micros(period);
        Timeline::of(Periodic::new(period, Instant::from_micros(started)))
    }

    #[test]
    fn packet_waits_for_the_next_tick_whenever_it_came() {
        for (packet, tick) in [(0, 128), (1, 128), (127, 128), (128, 256), (1_000, 1_024)] {
            let mut nic = periodic(128, 0);
            assert_eq!(nic.packet(packet), None);
            assert_eq!(nic.expires(), Some((tick, Reason::Timer)));
        }
    }

    #[test]
    fn ticks_count_from_the_start_and_not_from_the_interrupt() {
        let mut nic = periodic(100, 30);
        nic.packet(40);
        nic.packet(90);
        assert_eq!(nic.expires(), Some((130, Reason::Timer)));
        nic.host_answers(150);
        nic.packet(160);
        assert_eq!(nic.expires(), Some((230, Reason::Timer)));
    }

    #[test]
    fn tick_with_nothing_to_tell_is_silent() {
        let mut nic = periodic(100, 0);
        assert_eq!(nic.expires(), None);
        nic.packet(10);
        nic.expires();
        nic.host_answers(110);
        assert_eq!(nic.expires(), None);
    }

    #[test]
    fn a_phase_is_a_part_of_the_period() {
        let (period, half) = (Duration::from_micros(75), Phase(1 << 31));
        assert_eq!(half.of(period), Duration::from_nanos(37_500));
        assert_eq!(Phase(u32::MAX).of(period), Duration::from_nanos(74_999));
        assert_eq!(Phase::default().of(period), Duration::ZERO);
    }

    #[test]
    fn clock_that_is_ahead_has_ticked_before() {
        let mut nic = periodic(100, 340);
        nic.packet(10);
        assert_eq!(nic.expires(), Some((40, Reason::Timer)));
        nic.host_answers(41);
        nic.packet(340);
        assert_eq!(nic.expires(), Some((440, Reason::Timer)));
    }

    /// Else a packet could wait through one period after the other while the setting changes.
    #[test]
    fn packet_from_before_the_clock_started_is_signalled_at_its_first_tick() {
        let mut clock = Periodic::new(Duration::from_micros(128), Instant::from_micros(127));
        let unseen =
            Unseen { packets: 1, oldest: Some(Instant::from_micros(1)), ..Unseen::default() };
        let interrupt = clock.host_rearmed(Instant::from_micros(127), &unseen);
        assert_eq!(interrupt, Some(Reason::Rearm));
    }

    #[test]
    fn tick_that_passed_while_the_host_polled_is_made_up_for_at_rearm() {
        let mut nic = periodic(100, 0);
        nic.packet(10);
        nic.expires();
        nic.host_polls();
        nic.packet(150);
        assert_eq!(nic.host_rearms(200), Some(Reason::Rearm));
        nic.host_polls();
        nic.packet(250);
        assert_eq!(nic.host_rearms(299), None);
        assert_eq!(nic.expires(), Some((300, Reason::Timer)));
    }
}
