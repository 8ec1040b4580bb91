//! Spans of time, counted: exactly, as long as few of them differ.
//!
//! A histogram of three significant digits makes 74.976 us of 75. In virtual time, where a hold of
//! 75 us is 75 us, that would be a wrong figure, and few values differ. So each value is kept with
//! its count beside the histogram, until there are too many of them, as there soon are where the
//! machine's noise is in the values; from then on there is the histogram alone.

use hdrhistogram::Histogram;
use rustc_hash::FxHashMap;

/// Different values that are kept, 512 KiB of them.
pub(crate) const MAX_VALUES: usize = 16_384;

/// How often each span of time occurred, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u64>,
    counts: Option<FxHashMap<u64, u64>>,
    longest: u64,
}

impl Times {
    /// None yet. Spans above `longest` nanoseconds count as that long.
    ///
    /// # Panics
    /// If `longest` is less than 2, which no histogram takes.
    #[must_use]
    pub fn up_to(longest: u64) -> Self {
        let histogram = Histogram::new_with_max(longest, 3).expect("the bounds are valid");
        Self { histogram, counts: Some(FxHashMap::default()), longest }
    }

    /// Counts a span of `nanos`.
    pub fn record(&mut self, nanos: u64) {
        let nanos = nanos.min(self.longest);
        self.histogram.saturating_record(nanos);
        if let Some(counts) = &mut self.counts {
            *counts.entry(nanos).or_default() += 1;
            if counts.len() > MAX_VALUES {
                self.counts = None;
            }
        }
    }

    /// All of them, to three significant digits.
    #[must_use]
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// Each value with its count, ascending; none if there were too many different ones.
    #[must_use]
    pub fn exact(&self) -> Option<Vec<(u64, u64)>> {
        let mut values: Vec<_> = self.counts.as_ref()?.iter().map(|(&v, &n)| (v, n)).collect();
        values.sort_unstable();
        Some(values)
    }

    /// Takes away what `earlier`, a copy of this, had counted.
    ///
    /// # Panics
    /// If it is no earlier copy.
    pub fn subtract(&mut self, earlier: &Self) {
        let never = "an earlier copy never has more";
        self.histogram.subtract(&earlier.histogram).expect(never);
        let (Some(counts), Some(before)) = (&mut self.counts, &earlier.counts) else { return };
        for (value, n) in before {
            let count = counts.get_mut(value).expect(never);
            *count -= n;
            if *count == 0 {
                counts.remove(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_kept_as_they_are() {
        let mut times = Times::up_to(1_000_000);
        [75_000, 75_000, 12, 2_000_000].into_iter().for_each(|nanos| times.record(nanos));
        assert_eq!(times.exact().unwrap(), [(12, 1), (75_000, 2), (1_000_000, 1)]);
        let before = times.clone();
        [75_000, 13].into_iter().for_each(|nanos| times.record(nanos));
        times.subtract(&before);
        assert_eq!(times.exact().unwrap(), [(13, 1), (75_000, 1)]);
        assert_eq!(times.histogram().len(), 2);
    }

    #[test]
    fn many_values_leave_the_histogram() {
        let mut times = Times::up_to(1_000_000);
        (0..MAX_VALUES as u64).for_each(|nanos| times.record(nanos));
        let before = times.clone();
        assert_eq!(before.exact().unwrap().len(), MAX_VALUES);
        times.record(500_000);
        assert_eq!(times.exact(), None);
        times.subtract(&before);
        assert_eq!((times.exact(), times.histogram().len()), (None, 1));
    }
}
