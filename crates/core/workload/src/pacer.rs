//! Schedules: when the next thing is due, without drift.

use crate::{Duration, Instant};

/// An endless schedule of equally spaced moments, exact over any length: moment `k` is computed
/// from `k`, never by adding a rounded gap.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// `units` of work take `per_ns` nanoseconds.
    units: u64,
    per_ns: u64,
    done: u64,
}

impl Pacer {
    /// `per_second` moments a second; the first one at zero.
    pub(crate) fn per_second(per_second: u64) -> Self {
        Self { units: per_second.max(1), per_ns: 1_000_000_000, done: 0 }
    }

    /// One moment for each chunk of `chunk_bytes` at `rate_mbit` million bits per second.
    pub(crate) fn chunks(rate_mbit: u64, chunk_bytes: u64) -> Self {
        // bits / (Mbit/s) is microseconds, hence the factor 1000 to nanoseconds.
        Self { units: rate_mbit.max(1), per_ns: chunk_bytes * 8 * 1_000, done: 0 }
    }

    /// One moment every `interval`.
    pub(crate) fn every(interval: Duration) -> Self {
        Self { units: 1, per_ns: interval.as_nanos().max(1), done: 0 }
    }

    /// When the next thing is due.
    pub(crate) fn due(&self) -> Instant {
        let nanos = u128::from(self.done) * u128::from(self.per_ns) / u128::from(self.units);
        Instant::from_nanos(nanos as u64)
    }

    /// The next thing has been done, or skipped.
    pub(crate) fn advance(&mut self) {
        self.done += 1;
    }
}

/// The earlier of two optional moments.
pub(crate) fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_does_not_drift() {
        let mut pacer = Pacer::per_second(3);
        (0..3_000_000).for_each(|_| pacer.advance());
        assert_eq!(pacer.due(), Instant::from_nanos(1_000_000 * 1_000_000_000));
    }

    #[test]
    fn chunks_of_64_kib_at_1_gbit_are_524_288_ns_apart() {
        let mut pacer = Pacer::chunks(1000, 65_536);
        pacer.advance();
        assert_eq!(pacer.due(), Instant::from_nanos(524_288));
    }
}
