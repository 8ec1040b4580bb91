//! Spans of time, counted: exactly, as long as few of them differ.
//!
//! Buckets of three significant digits make 74.976 us of 75. In virtual time, where a hold of 75 us
//! is 75 us, that would be a wrong figure, and few values differ. So each value is kept with its
//! count, until there are too many of them, as there soon are where the machine's noise is in the
//! values; from then on there are buckets.
//!
//! Below 2048 ns every value has its own bucket. Above, each octave has 1024 of equal width, so
//! that one is at most 1/1024 of its values wide; its middle stands for them. Where many are
//! counted at once, [`Times::coarse`] has an eighth of the buckets from the beginning.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::distribution::HIGHEST_NS;

/// Different values that are kept.
const MAX_VALUES: usize = 16_384;

/// Significant bits of a value that its bucket keeps.
const BITS: u32 = 11;

/// The same of [`Times::coarse`].
const COARSE_BITS: u32 = 8;

/// How often each span of time occurred, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Times {
    counts: Counts,
    longest: u64,
    /// Significant bits of a value that a bucket keeps.
    bits: u32,
}

#[derive(Clone, Debug)]
enum Counts {
    /// For each value in nanoseconds.
    Exact(BTreeMap<u64, u64>),
    /// For each bucket, by its number, up to the last that is not empty.
    Rounded(Vec<u64>),
}

/// The number of the bucket that holds `nanos`, where buckets keep so many significant bits.
#[inline]
fn bucket_of(nanos: u64, bits: u32) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(bits);
    ((shift as usize) << (bits - 1)) + (nanos >> shift) as usize
}

/// The middle of a bucket.
fn middle_of(bucket: usize, bits: u32) -> u64 {
    let shift = (bucket >> (bits - 1)).saturating_sub(1);
    let lowest = ((bucket - (shift << (bits - 1))) as u64) << shift;
    lowest + (1_u64 << shift) / 2
}

impl Default for Times {
    /// None yet, of up to 60 s: [`HIGHEST_NS`].
    fn default() -> Self {
        Self::up_to(HIGHEST_NS)
    }
}

impl Times {
    /// None yet. Spans above `longest` nanoseconds count as that long.
    #[must_use]
    pub fn up_to(longest: u64) -> Self {
        Self { counts: Counts::Exact(BTreeMap::new()), longest, bits: BITS }
    }

    /// None yet, counted in few buckets, each at most 1/128 of its values wide. Spans above
    /// `longest` nanoseconds count as that long.
    #[must_use]
    pub fn coarse(longest: u64) -> Self {
        Self { counts: Counts::Rounded(Vec::new()), longest, bits: COARSE_BITS }
    }

    /// Counts a span of `nanos`.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        let (nanos, bits) = (nanos.min(self.longest), self.bits);
        match &mut self.counts {
            Counts::Exact(values) => {
                *values.entry(nanos).or_default() += 1;
                if values.len() > MAX_VALUES {
                    let mut buckets = Vec::new();
                    values.iter().for_each(|(value, n)| add(&mut buckets, bits, *value, *n));
                    self.counts = Counts::Rounded(buckets);
                }
            }
            Counts::Rounded(buckets) => add(buckets, bits, nanos, 1),
        }
    }

    /// Whether each value is counted by itself.
    #[must_use]
    pub fn are_exact(&self) -> bool {
        matches!(self.counts, Counts::Exact(_))
    }

    /// Each value, or the middle of each bucket, with its count, ascending, where that is not zero.
    #[must_use]
    pub fn counts(&self) -> Vec<(u64, u64)> {
        match &self.counts {
            Counts::Exact(values) => values.iter().map(|(value, n)| (*value, *n)).collect(),
            Counts::Rounded(buckets) => {
                let counts = buckets.iter().enumerate().filter(|(_, n)| **n > 0);
                let middle = |bucket| middle_of(bucket, self.bits).min(self.longest);
                counts.map(|(bucket, n)| (middle(bucket), *n)).collect()
            }
        }
    }

    /// Takes away what `earlier`, a copy of this, had counted.
    ///
    /// # Panics
    /// If it is no earlier copy.
    pub fn subtract(&mut self, earlier: &Self) {
        let never = "an earlier copy never has more";
        match (&mut self.counts, &earlier.counts) {
            (Counts::Exact(values), Counts::Exact(before)) => {
                for (value, n) in before {
                    let count = values.get_mut(value).expect(never);
                    *count = count.checked_sub(*n).expect(never);
                    if *count == 0 {
                        values.remove(value);
                    }
                }
            }
            (Counts::Rounded(buckets), _) => {
                for (value, n) in earlier.counts() {
                    let count = buckets.get_mut(bucket_of(value, self.bits)).expect(never);
                    *count = count.checked_sub(n).expect(never);
                }
            }
            (Counts::Exact(_), Counts::Rounded(_)) => panic!("{never}"),
        }
    }
}

/// Adds `n` to the bucket of a value.
fn add(buckets: &mut Vec<u64>, bits: u32, nanos: u64, n: u64) {
    let bucket = bucket_of(nanos, bits);
    if bucket >= buckets.len() {
        buckets.resize(bucket + 1, 0);
    }
    buckets[bucket] += n;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_kept_as_they_are() {
        let mut times = Times::up_to(1_000_000);
        [75_000, 75_000, 12, 2_000_000].into_iter().for_each(|nanos| times.record(nanos));
        assert_eq!(times.counts(), [(12, 1), (75_000, 2), (1_000_000, 1)]);
        let before = times.clone();
        [75_000, 13].into_iter().for_each(|nanos| times.record(nanos));
        times.subtract(&before);
        assert_eq!((times.are_exact(), times.counts()), (true, [(13, 1), (75_000, 1)].into()));
    }

    #[test]
    fn many_values_leave_buckets() {
        let mut times = Times::up_to(1_000_000);
        (0..MAX_VALUES as u64).for_each(|nanos| times.record(nanos));
        let before = times.clone();
        assert_eq!((before.are_exact(), before.counts().len()), (true, MAX_VALUES));
        times.record(500_000);
        assert!(!times.are_exact());
        let after = times.clone();
        times.record(1_000_000);
        times.subtract(&after);
        assert_eq!(times.counts(), [(1_000_000, 1)]);
        let mut since = after.clone();
        since.subtract(&before);
        assert_eq!(since.counts(), [(499_968 + 128, 1)], "the middle of its bucket of 256 ns");
    }

    #[test]
    fn few_buckets_are_within_a_two_hundredth() {
        let mut times = Times::coarse(1_000_000);
        [12, 75_000, 75_100, 2_000_000].into_iter().for_each(|nanos| times.record(nanos));
        assert!(!times.are_exact());
        let counts = times.counts();
        assert_eq!((counts[0], counts[2]), ((12, 1), (1_000_000, 1)));
        assert!(counts[1].1 == 2 && counts[1].0.abs_diff(75_000) <= 75_000 / 200, "{counts:?}");
    }

    #[test]
    fn buckets_follow_one_another() {
        let of = |nanos| bucket_of(nanos, BITS);
        assert_eq!([0, 1, 2_047, 2_048, 2_049, 2_050].map(of), [0, 1, 2047, 2048, 2048, 2049]);
        assert_eq!([2_047, 2_048, 3_072].map(|it| middle_of(it, BITS)), [2_047, 2_049, 4_098]);
        for (shift, bits) in (0..64).flat_map(|shift| [(shift, BITS), (shift, COARSE_BITS)]) {
            for value in [1_u64 << shift, (1 << shift) + 1, u64::MAX >> shift] {
                let (bucket, widest) = (bucket_of(value, bits), value >> bits);
                assert_eq!(bucket_of(middle_of(bucket, bits), bits), bucket);
                assert!(middle_of(bucket, bits).abs_diff(value) <= widest, "{value}");
            }
        }
    }
}
