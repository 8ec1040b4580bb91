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

/// Interrupts only at the ticks of a clock of its own, and only when something is pending.
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
    use super::*;

    #[test]
    fn a_phase_is_a_part_of_the_period() {
        let (period, half) = (Duration::from_micros(75), Phase(1 << 31));
        assert_eq!(half.of(period), Duration::from_nanos(37_500));
        assert_eq!(Phase(u32::MAX).of(period), Duration::from_nanos(74_999));
        assert_eq!(Phase::default().of(period), Duration::ZERO);
    }
}
