//! How often which times occurred, as records and results have them.
//!
//! # Accuracy
//!
//! As long as few values differ (16,384), each is a bucket of its own and all is exact.
//! Beyond that, values are in histograms of three significant digits from 1 ns to 60 s. Below 2048
//! ns every value has its own bucket; above, a bucket is at most 1/1024 of its values wide and is
//! reported by its middle, so a quantile is off by at most 0.05 % of itself, well inside the 0.1 %
//! that three digits promise. Longer than 60 s counts as 60 s. Count, minimum, maximum and mean are
//! exact in any case.

use crate::quantiles::Quantiles;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::times::Times;

/// The longest time that a histogram tells apart, in nanoseconds: 60 s.
pub const HIGHEST_NS: u64 = 60_000_000_000;

/// More than anything that is counted, and few enough to be added up: 2^53.
pub const MAX_COUNT: u64 = 1 << 53;

/// A distribution of nanoseconds, possibly negative ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// The smallest, exactly.
    pub min_ns: i64,
    /// The largest, exactly.
    pub max_ns: i64,
    /// Their sum, exactly.
    pub sum_ns: i64,
    /// `[value_ns, count]`, ascending, only where something is.
    pub buckets: Vec<[i64; 2]>,
    /// Whether each value is a bucket of its own, and not a histogram's.
    #[serde(default)]
    pub exact: bool,
}

impl Distribution {
    /// These times, multiplied by `sign` (1 or -1).
    #[must_use]
    pub fn of(times: &Times, sign: i64) -> Self {
        let Some(values) = times.exact() else {
            return Self::from_histogram(times.histogram(), sign);
        };
        Self::exactly(values.into_iter().map(|(value, n)| [sign * value as i64, n as i64]))
    }

    /// Pairs of a value in nanoseconds and how often it was there, in any order.
    #[must_use]
    pub fn exactly(pairs: impl Iterator<Item = [i64; 2]>) -> Self {
        let mut whole = Self { buckets: pairs.collect(), exact: true, ..Self::default() };
        whole.arrange();
        whole.count = whole.buckets.iter().map(|[_, n]| n.unsigned_abs()).sum();
        whole.describe();
        whole
    }

    /// Puts the buckets in order, one for each value.
    fn arrange(&mut self) {
        self.buckets.sort_unstable();
        self.buckets.dedup_by(|later, kept| {
            let same = later[0] == kept[0];
            if same {
                kept[1] += later[1];
            }
            same
        });
    }

    /// Extremes and sum, as the buckets have them.
    fn describe(&mut self) {
        if let (Some(first), Some(last)) = (self.buckets.first(), self.buckets.last()) {
            (self.min_ns, self.max_ns) = (first[0], last[0]);
        }
        let products = self.buckets.iter().map(|[value, n]| value.saturating_mul(*n));
        self.sum_ns = products.fold(0, i64::saturating_add);
    }

    /// The contents of a histogram of magnitudes, times `sign` (1 or -1).
    #[must_use]
    pub fn from_histogram(histogram: &Histogram<u64>, sign: i64) -> Self {
        let value = |raw: u64| sign * (histogram.median_equivalent(raw).min(HIGHEST_NS) as i64);
        let recorded = histogram.iter_recorded();
        let mut buckets: Vec<[i64; 2]> = recorded
            .map(|step| [value(step.value_iterated_to()), step.count_at_value() as i64])
            .collect();
        buckets.sort_unstable();
        let mut whole = Self { count: histogram.len(), buckets, ..Self::default() };
        whole.describe();
        whole
    }

    /// Replaces what the histogram approximated by what was counted exactly. Nothing happens to an
    /// empty one.
    pub fn set_exact(&mut self, min_ns: i64, max_ns: i64, sum_ns: i64) {
        if self.count > 0 {
            (self.min_ns, self.max_ns, self.sum_ns) = (min_ns, max_ns, sum_ns);
        }
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.buckets.extend_from_slice(&other.buckets);
        self.exact &= other.exact;
        self.arrange();
    }

    /// The smallest value that a fraction `quantile` (0 to 1) of all values does not exceed, in
    /// nanoseconds; 0 for an empty distribution.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> i64 {
        let rank = ((quantile * self.count as f64).ceil() as i64).max(1);
        let mut seen = 0;
        for &[value, n] in &self.buckets {
            seen += n;
            if seen >= rank {
                return value.clamp(self.min_ns, self.max_ns);
            }
        }
        self.max_ns
    }

    /// The arithmetic mean in nanoseconds; 0 for an empty distribution.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count.max(1) as f64
    }

    /// Whether it is one of values: one that was read from a file, or comes from another host, may
    /// be anything.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let counts = self.buckets.iter().map(|[_, n]| u64::try_from(*n).ok().filter(|n| *n > 0));
        let sum = counts.into_iter().try_fold(0_u64, |sum, n| sum.checked_add(n?));
        sum == Some(self.count)
            && self.count <= MAX_COUNT
            && self.min_ns <= self.max_ns
            && self.buckets.is_sorted_by_key(|[value, _]| *value)
    }

    /// Its quantiles in microseconds; `None` if it is empty.
    #[must_use]
    pub fn quantiles(&self) -> Option<Quantiles> {
        let us = |ns: i64| ns as f64 / 1e3;
        (self.count > 0).then(|| Quantiles {
            count: self.count,
            min: us(self.min_ns),
            p50: us(self.quantile_ns(0.5)),
            p90: us(self.quantile_ns(0.9)),
            p99: us(self.quantile_ns(0.99)),
            max: us(self.max_ns),
            mean: self.mean_ns() / 1e3,
            exact: self.exact,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_times() -> Times {
        Times::up_to(HIGHEST_NS)
    }

    fn distribution(values: &[u64]) -> Distribution {
        let mut times = new_times();
        values.iter().for_each(|&value| times.record(value));
        Distribution::of(&times, 1)
    }

    #[test]
    fn merge_adds_bucket_by_bucket() {
        let mut left = distribution(&[100, 200]);
        left.merge(&distribution(&[200, 300]));
        assert_eq!(left.buckets, [[100, 1], [200, 2], [300, 1]]);
        assert_eq!((left.count, left.min_ns, left.max_ns, left.sum_ns), (4, 100, 300, 800));
        left.merge(&Distribution::default());
        assert_eq!(left.count, 4);
    }

    #[test]
    fn what_no_values_make_is_not_sound() {
        let sound = distribution(&[100, 200, 200]);
        assert!(sound.is_sound() && Distribution::default().is_sound());
        let with = |change: fn(&mut Distribution)| {
            let mut changed = sound.clone();
            change(&mut changed);
            changed.is_sound()
        };
        assert!(!with(|it| it.count += 1));
        assert!(!with(|it| (it.min_ns, it.max_ns) = (2, 1)));
        assert!(!with(|it| it.buckets.reverse()));
        assert!(!with(|it| it.buckets[0][1] = -1));
        assert!(!with(|it| it.buckets[0][1] = i64::MAX));
        assert!(!with(|it| (it.count, it.buckets) = (1 << 60, vec![[100, 1 << 60]])));
    }

    #[test]
    fn quantiles_in_microseconds() {
        let all = distribution(&(1..=100).map(|n| n * 10).collect::<Vec<_>>()).quantiles().unwrap();
        assert_eq!((all.min, all.max, all.count), (0.01, 1.0, 100));
        assert_eq!((all.p50, all.p90, all.p99), (0.5, 0.9, 0.99));
        assert!((all.mean - 0.505).abs() < 1e-9);
        assert_eq!(Distribution::default().quantiles(), None);
    }

    #[test]
    fn few_values_are_exact() {
        let held = distribution(&[75_000, 75_000, 59_999_999_999]);
        assert_eq!(
            (held.exact, held.quantile_ns(0.5), held.max_ns),
            (true, 75_000, 59_999_999_999)
        );
        let mut both = distribution(&[75_001]);
        both.merge(&held);
        assert_eq!((both.exact, both.quantile_ns(0.5), both.count), (true, 75_000, 4));
    }

    #[test]
    fn error_of_many_is_below_a_thousandth() {
        let mut times = new_times();
        (0..100_000).for_each(|n| times.record(90_000 + n));
        let rounded = Distribution::of(&times, 1);
        assert!(!rounded.exact && rounded.buckets.len() < 10_000);
        let median = rounded.quantile_ns(0.5);
        assert!((median - 140_000).abs() <= 140, "{median}");
        let mut both = distribution(&[90_000]);
        both.merge(&rounded);
        assert!(!both.exact, "{:?}", both.quantiles());
    }
}
