//! Where workloads put what they measured.

use alloc::vec::Vec;

use base::distribution::{Distribution, HIGHEST_NS};
use base::times::Times;

use crate::{Counter, Instant, Record, SCHEMA, Series, Timing, WorkloadSpec};
use alloc::collections::BTreeMap;

/// The part of a run that counts: `[start, end)`, after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The end of the warm-up, the first moment that counts.
    pub start: Instant,
    /// The first moment that no longer counts, when clients stop.
    pub end: Instant,
}

impl Window {
    /// A window that no moment is in: that of a server before its *go*.
    pub const NEVER: Self =
        Self { start: Instant::from_nanos(u64::MAX), end: Instant::from_nanos(u64::MAX) };

    /// Does this moment count?
    pub fn contains(self, at: Instant) -> bool {
        self.start <= at && at < self.end
    }
}

/// Collects what one workload measures inside the window.
///
/// Its memory grows with how many values differ, up to some 200 KiB for each timing, and with a
/// series.
#[derive(Debug)]
pub struct Recorder {
    window: Window,
    /// Two per timing: values from zero up, and the magnitudes of negative ones.
    distributions: Vec<[Exact; 2]>,
    counters: BTreeMap<Counter, u64>,
    series: Option<Series>,
}

/// Times, and exactly what buckets of them only approximate.
#[derive(Debug)]
struct Exact {
    times: Times,
    sum_ns: i64,
    min_ns: u64,
    max_ns: u64,
}

impl Exact {
    fn new() -> Self {
        Self { times: Times::default(), sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Longer than [`HIGHEST_NS`] counts as that; what a far clock says may be.
    fn record(&mut self, magnitude_ns: u64) {
        let magnitude_ns = magnitude_ns.min(HIGHEST_NS);
        self.times.record(magnitude_ns);
        self.sum_ns = self.sum_ns.saturating_add_unsigned(magnitude_ns);
        self.min_ns = self.min_ns.min(magnitude_ns);
        self.max_ns = self.max_ns.max(magnitude_ns);
    }
}

impl Recorder {
    /// A recorder for one run. `series` also keeps every sample with its moment, not only the
    /// distribution.
    pub fn new(window: Window, series: bool) -> Self {
        Self {
            window,
            distributions: Timing::ALL.iter().map(|_| [Exact::new(), Exact::new()]).collect(),
            counters: BTreeMap::new(),
            series: series.then(Series::default),
        }
    }

    /// The window that counts.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Moves the window: a server learns only on *go* when it is.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// Adds `n` to a counter, if `at` counts.
    pub fn count(&mut self, at: Instant, counter: Counter, n: u64) {
        if self.window.contains(at) {
            *self.counters.entry(counter).or_default() += n;
        }
    }

    /// Takes back `n` from a counter, if `at` counts and as far as the counter reaches: what was
    /// taken for lost turned up after all.
    pub fn uncount(&mut self, at: Instant, counter: Counter, n: u64) {
        if self.window.contains(at) {
            let counter = self.counters.entry(counter).or_default();
            *counter = counter.saturating_sub(n);
        }
    }

    /// Adds a value to a distribution, if `at` counts.
    pub fn record(&mut self, at: Instant, timing: Timing, value_ns: i64) {
        if self.window.contains(at) {
            let sign = usize::from(value_ns < 0);
            self.distributions[timing as usize][sign].record(value_ns.unsigned_abs());
        }
    }

    /// Adds a row to the series, if there is one and `at` counts. All rows of a run name the same
    /// timings.
    pub fn sample(&mut self, at: Instant, values: &[(Timing, i64)]) {
        if self.window.contains(at)
            && let Some(series) = &mut self.series
        {
            series.push(at.as_nanos(), values);
        }
    }

    /// How often this was counted.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(&counter).copied().unwrap_or_default()
    }

    /// All counters that are not zero.
    pub fn counters(&self) -> BTreeMap<Counter, u64> {
        self.counters.iter().filter(|(_, n)| **n > 0).map(|(counter, n)| (*counter, *n)).collect()
    }

    /// The distribution of a timing.
    pub fn distribution(&self, timing: Timing) -> Distribution {
        let [up, down] = &self.distributions[timing as usize];
        let mut whole = Distribution::of(&up.times, 1);
        whole.set_exact(up.min_ns as i64, up.max_ns as i64, up.sum_ns);
        let mut below = Distribution::of(&down.times, -1);
        below.set_exact(-(down.max_ns as i64), -(down.min_ns as i64), -down.sum_ns);
        whole.merge(&below);
        whole
    }

    /// All distributions that hold something.
    pub fn distributions(&self) -> BTreeMap<Timing, Distribution> {
        let all = Timing::ALL.map(|timing| (timing, self.distribution(timing)));
        all.into_iter().filter(|(_, distribution)| distribution.count > 0).collect()
    }

    /// What a workload of this specification has measured, in so much of its window, with so much
    /// CPU time of its own.
    pub fn into_record(self, workload: &WorkloadSpec, window_ns: u64, cpu_ns: u64) -> Record {
        Record {
            schema: SCHEMA,
            workload: workload.kind().into(),
            window_ns,
            cpu_ns,
            counters: self.counters(),
            distributions: self.distributions(),
            series: self.series,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;

    const WINDOW: Window = Window { start: Instant::from_nanos(10), end: Instant::from_nanos(20) };

    #[test]
    fn only_the_window_counts() {
        let mut recorder = Recorder::new(WINDOW, true);
        for at in [9, 10, 19, 20] {
            let at = Instant::from_nanos(at);
            recorder.count(at, Counter::Transactions, 1);
            recorder.record(at, Timing::Latency, 1000);
            recorder.sample(at, &[(Timing::Latency, 1000)]);
        }
        assert_eq!(recorder.counter(Counter::Transactions), 2);
        assert_eq!(recorder.distribution(Timing::Latency).count, 2);
        let series = recorder.series.unwrap();
        assert_eq!(series.columns, [Column::Time, Column::Timing(Timing::Latency)]);
        assert_eq!(series.rows, [[10, 1000], [19, 1000]]);
    }

    #[test]
    fn negative_values_keep_their_order() {
        let mut recorder = Recorder::new(WINDOW, false);
        for value in [-300, -100, 0, 200] {
            recorder.record(Instant::from_nanos(10), Timing::Offset, value);
        }
        let offset = recorder.distribution(Timing::Offset);
        assert_eq!(offset.buckets, [[-300, 1], [-100, 1], [0, 1], [200, 1]]);
        assert_eq!((offset.min_ns, offset.max_ns, offset.sum_ns), (-300, 200, -200));
    }
}
