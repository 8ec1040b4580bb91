//! How often which times occurred, as records and results have them.
//!
//! # Accuracy
//!
//! As long as few values differ (16,384), each is a bucket of its own and all is exact.
//! Beyond that, values are in the buckets of [`Times`]: a quantile is off by at most 0.05 % of
//! itself, well inside the 0.1 % that three digits promise. Longer than 60 s counts as 60 s. Count,
//! minimum, maximum and mean of what an agent records are exact in any case.

use alloc::vec::Vec;

use crate::quantiles::rank;
use crate::times::Times;

/// The longest time that is distinguished, in nanoseconds: 60 s.
pub const HIGHEST_NS: u64 = 60_000_000_000;

/// More than anything that is counted, and few enough to be added up: 2^53.
pub const MAX_COUNT: u64 = 1 << 53;

/// A distribution of nanoseconds, possibly negative ones.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
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
    /// Whether each value is a bucket of its own.
    #[cfg_attr(feature = "serde", serde(default))]
    pub exact: bool,
}

impl Distribution {
    /// These times, multiplied by `sign` (1 or -1).
    pub fn of(times: &Times, sign: i64) -> Self {
        let counts = times.counts().into_iter();
        let whole = Self::exactly(counts.map(|(value, n)| [sign * value as i64, n as i64]));
        Self { exact: times.are_exact(), ..whole }
    }

    /// Pairs of a value in nanoseconds and how often it was there, in any order.
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

    /// Replaces what buckets approximate by what was counted exactly. Nothing happens to an
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

    /// The smallest value that so many in a thousand of all values do not exceed, in nanoseconds; 0
    /// for an empty distribution.
    #[must_use]
    pub fn quantile_ns(&self, per_mille: u32) -> i64 {
        let rank = rank(self.count, per_mille);
        let mut seen = 0;
        for &[value, n] in &self.buckets {
            seen = n.unsigned_abs().saturating_add(seen);
            if seen >= rank {
                return value.clamp(self.min_ns, self.max_ns);
            }
        }
        self.max_ns
    }

    /// Whether it is one of values: one that was read from a file, or comes from another host, may
    /// be anything.
    pub fn is_sound(&self) -> bool {
        let counts = self.buckets.iter().map(|[_, n]| u64::try_from(*n).ok().filter(|n| *n > 0));
        let sum = counts.into_iter().try_fold(0_u64, |sum, n| sum.checked_add(n?));
        sum == Some(self.count)
            && self.count <= MAX_COUNT
            && self.min_ns <= self.max_ns
            && self.buckets.is_sorted_by_key(|[value, _]| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(values: &[u64]) -> Distribution {
        let mut times = Times::default();
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
        assert!(!with(|it| (it.count, it.buckets) = (1 << 60, [[100, 1 << 60]].into())));
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let all = distribution(&(1..=100).map(|n| n * 10).collect::<Vec<_>>());
        let quantiles = [0, 500, 900, 990, 1000].map(|per_mille| all.quantile_ns(per_mille));
        assert_eq!(quantiles, [10, 500, 900, 990, 1000]);
        assert_eq!(Distribution::default().quantile_ns(500), 0);
    }

    #[test]
    fn few_values_are_exact() {
        let held = distribution(&[75_000, 75_000, 59_999_999_999]);
        assert_eq!(
            (held.exact, held.quantile_ns(500), held.max_ns),
            (true, 75_000, 59_999_999_999)
        );
        let mut both = distribution(&[75_001]);
        both.merge(&held);
        assert_eq!((both.exact, both.quantile_ns(500), both.count), (true, 75_000, 4));
    }

    #[test]
    fn error_of_many_is_below_a_thousandth() {
        let mut times = Times::default();
        (0..100_000).for_each(|n| times.record(90_000 + n));
        let rounded = Distribution::of(&times, 1);
        assert!(!rounded.exact && rounded.buckets.len() < 10_000);
        let median = rounded.quantile_ns(500);
        assert!((median - 140_000).abs() <= 140, "{median}");
        let mut both = distribution(&[90_000]);
        both.merge(&rounded);
        assert!(!both.exact, "{}", both.quantile_ns(500));
    }
}
