//! Quantiles: by nearest rank everywhere, so that each is a value that was measured; and one shape
//! of a distribution of times, for everything that is printed.

use alloc::vec::Vec;

use crate::distribution::Distribution;

/// Quantiles of times in microseconds, by nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantiles {
    /// How many values.
    pub count: u64,
    /// The smallest value, in the unit of the values.
    pub min: f64,
    /// Half are no larger.
    pub p50: f64,
    /// Nine in ten are no larger.
    pub p90: f64,
    /// 99 in 100 are no larger.
    pub p99: f64,
    /// 999 in 1000 are no larger; 0 in documents of before it was there.
    #[cfg_attr(feature = "serde", serde(default))]
    pub p999: f64,
    /// The largest value, in their unit.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// Whether they are exact, and not those of buckets of three significant digits.
    pub exact: bool,
}

impl Quantiles {
    /// Those of a distribution; `None` if it is empty.
    #[must_use]
    pub fn of(all: &Distribution) -> Option<Self> {
        let us = |ns: i64| ns as f64 / 1e3;
        (all.count > 0).then(|| Self {
            count: all.count,
            min: us(all.min_ns),
            p50: us(all.quantile_ns(500)),
            p90: us(all.quantile_ns(900)),
            p99: us(all.quantile_ns(990)),
            p999: us(all.quantile_ns(999)),
            max: us(all.max_ns),
            mean: all.sum_ns as f64 / all.count as f64 / 1e3,
            exact: all.exact,
        })
    }

    /// Those of nanoseconds in ascending order; `None` if there are none.
    pub fn of_sorted(nanos: &[u64]) -> Option<Self> {
        let us = |per_mille| Some(nearest_rank(nanos, per_mille)? as f64 / 1e3);
        let sum: u128 = nanos.iter().map(|nanos| u128::from(*nanos)).sum();
        Some(Self {
            count: nanos.len() as u64,
            min: us(0)?,
            p50: us(500)?,
            p90: us(900)?,
            p99: us(990)?,
            p999: us(999)?,
            max: us(1000)?,
            mean: sum as f64 / nanos.len() as f64 / 1e3,
            exact: true,
        })
    }

    /// Half of each time.
    #[must_use]
    pub fn half(self) -> Self {
        let Self { count, min, p50, p90, p99, p999, max, mean, exact } = self;
        let all = [min, p50, p90, p99, p999, max, mean];
        let [min, p50, p90, p99, p999, max, mean] = all.map(|us| us / 2.0);
        Self { count, min, p50, p90, p99, p999, max, mean, exact }
    }
}

/// The rank, from 1, of the smallest of so many values that so many in a thousand do not exceed.
pub(crate) fn rank(count: u64, per_mille: u32) -> u64 {
    (u128::from(count) * u128::from(per_mille)).div_ceil(1_000).max(1) as u64
}

/// The smallest of ascending values that so many in a thousand of them do not exceed; `None` if
/// there are none.
pub fn nearest_rank<T: Copy>(sorted: &[T], per_mille: u32) -> Option<T> {
    sorted.get(rank(sorted.len() as u64, per_mille) as usize - 1).copied()
}

/// The median of a few figures, such as those of rounds: of an even number the mean of the two in
/// the middle, since of two rounds neither is the typical one. `None` if there are none.
pub fn median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2)?;
    Some(f64::midpoint(sorted[(sorted.len() - 1) / 2], *upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let nanos: [u64; 100] = core::array::from_fn(|at| (at as u64 + 1) * 1_000);
        let all = Quantiles::of_sorted(&nanos).unwrap();
        assert_eq!((all.count, all.min, all.p50, all.p90), (100, 1.0, 50.0, 90.0));
        assert_eq!((all.p99, all.max, all.mean, all.half().p50), (99.0, 100.0, 50.5, 25.0));
        assert_eq!((all.p999, all.half().p999), (100.0, 50.0));
        let one = Quantiles::of_sorted(&[7_000]).unwrap();
        assert_eq!((one.min, one.p50, one.p99, one.mean), (7.0, 7.0, 7.0, 7.0));
        assert_eq!(Quantiles::of_sorted(&[]), None);
        let counted = Distribution::exactly(nanos.iter().map(|nanos| [*nanos as i64, 1]));
        assert_eq!(Quantiles::of(&counted), Some(all));
        assert_eq!(Quantiles::of(&Distribution::default()), None);
        assert_eq!(median([4.0, 1.0, 9.0]), Some(4.0));
        assert_eq!(median([4.0, 1.0]), Some(2.5));
        assert_eq!(median([]), None);
    }
}
