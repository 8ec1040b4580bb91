//! Many paths as one table.
//!
//! Quantiles of stages do not add up to the quantile of the whole. So besides them there are two
//! columns that do: *typical*, the mean of the requests in the middle tenth by their total, and
//! *slow*, the mean of the slowest hundredth.

use serde::Serialize;

use super::stages::{Lengths, Stage};

/// Paths that are kept at most: more do not make quantiles better.
const MAX_PATHS: usize = 200_000;

/// Fewer paths than this tell what happened to them, and not what happens.
const FEWEST: usize = 5;

/// One stage of many paths, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StageRow {
    /// Which one.
    pub stage: Stage,
    /// The mean of typical requests.
    pub typical_us: f64,
    /// The mean of the slowest hundredth.
    pub slow_us: f64,
    /// Half of all requests spend less here.
    pub p50_us: f64,
    /// All but a hundredth spend less here.
    pub p99_us: f64,
}

/// Many paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    pub requests: usize,
    /// The stages that occur, in order.
    pub stages: Vec<StageRow>,
    /// All stages together.
    pub total: Totals,
}

/// Totals of many paths, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// The mean of typical requests.
    pub typical_us: f64,
    /// The mean of the slowest hundredth.
    pub slow_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
}

/// Collects paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collection(Vec<Lengths>);

impl Collection {
    /// Just enough paths of these lengths for a table.
    #[cfg(test)]
    pub(crate) fn of(lengths: Lengths) -> Self {
        Self(vec![lengths; FEWEST])
    }

    /// Adds one.
    pub(crate) fn add(&mut self, lengths: Lengths) {
        if self.0.len() < MAX_PATHS {
            self.0.push(lengths);
        }
    }

    /// How many there are.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls `each` with every path's nanoseconds in a stage, for all stages that occur.
    pub(crate) fn each(&self, mut each: impl FnMut(Stage, u64)) {
        for stage in Stage::ALL {
            let lengths = || self.0.iter().map(|lengths| lengths.of(stage));
            if lengths().any(|nanos| nanos > 0) {
                lengths().for_each(|nanos| each(stage, nanos));
            }
        }
    }

    /// The median of all of a stage, in nanoseconds.
    #[must_use]
    pub(crate) fn median(&self, stage: Stage) -> Option<u64> {
        quantile(&sorted(self.0.iter().map(|lengths| lengths.of(stage))), 0.5)
    }

    /// Moves up to that much of each path from one stage to another.
    pub(crate) fn shift(&mut self, from: Stage, to: Stage, nanos: u64) {
        self.0.iter_mut().for_each(|lengths| lengths.shift(from, to, nanos));
    }

    /// The table; `None` if there are too few paths for one.
    #[must_use]
    pub(crate) fn summary(&self) -> Option<Summary> {
        if self.len() < FEWEST {
            return None;
        }
        let mut ranked = self.0.clone();
        ranked.sort_by_key(Lengths::total);
        let middle = around_middle(&ranked);
        let slow = &ranked[ranked.len() - ranked.len().div_ceil(100)..];
        let totals = sorted(ranked.iter().map(Lengths::total));
        let row = |of: &dyn Fn(&Lengths) -> u64, sorted: &[u64]| Totals {
            typical_us: mean_us(middle, of),
            slow_us: mean_us(slow, of),
            p50_us: micros(quantile(sorted, 0.5).unwrap_or(0)),
            p99_us: micros(quantile(sorted, 0.99).unwrap_or(0)),
        };
        let stages = Stage::ALL.into_iter().filter_map(|stage| {
            let sorted = sorted(ranked.iter().map(|lengths| lengths.of(stage)));
            sorted.last().filter(|most| **most > 0)?;
            let Totals { typical_us, slow_us, p50_us, p99_us } =
                row(&|lengths| lengths.of(stage), &sorted);
            Some(StageRow { stage, typical_us, slow_us, p50_us, p99_us })
        });
        Some(Summary {
            requests: ranked.len(),
            stages: stages.collect(),
            total: row(&Lengths::total, &totals),
        })
    }
}

impl Summary {
    /// What typical requests spend in a stage, in microseconds.
    #[must_use]
    pub fn typical(&self, stage: Stage) -> f64 {
        self.stages.iter().find(|row| row.stage == stage).map_or(0.0, |row| row.typical_us)
    }

    /// The stage that typical requests spend most in.
    #[must_use]
    pub fn largest(&self) -> Option<&StageRow> {
        self.stages.iter().max_by(|a, b| a.typical_us.total_cmp(&b.typical_us))
    }
}

/// The middle tenth, and at least one.
fn around_middle(ranked: &[Lengths]) -> &[Lengths] {
    let half = ranked.len() / 20;
    let middle = ranked.len() / 2;
    ranked.get(middle - half.min(middle)..(middle + half + 1).min(ranked.len())).unwrap_or(ranked)
}

fn sorted(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values
}

/// The value that this share of all is below, by nearest rank.
pub(super) fn quantile(sorted: &[u64], share: f64) -> Option<u64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

fn mean_us(paths: &[Lengths], of: &dyn Fn(&Lengths) -> u64) -> f64 {
    let sum: u64 = paths.iter().map(of).sum();
    micros(sum) / paths.len().max(1) as f64
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(far: u64, wake: u64) -> Lengths {
        let mut lengths = Lengths::default();
        lengths.add(Stage::Far, far);
        lengths.add(Stage::WakeUp, wake);
        lengths
    }

    fn collection() -> Collection {
        let mut all = Collection::default();
        // 99 of 100 take 100 us far away; each hundredth one waits 5 ms for a processor.
        for number in 0..1_000_u64 {
            let wake = if number % 100 == 7 { 5_000_000 } else { 10_000 + number };
            all.add(lengths(100_000, wake));
        }
        all
    }

    #[test]
    fn typical_and_slow_add_up_and_differ_in_their_cause() {
        let summary = collection().summary().unwrap();
        assert_eq!(summary.requests, 1_000);
        let sum = |of: fn(&StageRow) -> f64| summary.stages.iter().map(of).sum::<f64>();
        assert!((sum(|row| row.typical_us) - summary.total.typical_us).abs() < 1e-6);
        assert!((sum(|row| row.slow_us) - summary.total.slow_us).abs() < 1e-6);
        assert_eq!(summary.largest().unwrap().stage, Stage::Far);
        assert!((summary.total.slow_us - 5_100.0).abs() < 1e-6);
        assert_eq!(summary.total.p99_us, 110.999);
    }

    #[test]
    fn stages_that_never_occur_are_left_out() {
        let summary = collection().summary().unwrap();
        let stages: Vec<Stage> = summary.stages.iter().map(|row| row.stage).collect();
        assert_eq!(stages, [Stage::Far, Stage::WakeUp]);
        assert_eq!(summary.typical(Stage::Hold), 0.0);
    }

    #[test]
    fn few_paths_have_no_summary() {
        let enough = Collection::of(lengths(4_000, 0));
        let few = Collection(enough.0[1..].to_vec());
        assert_eq!((Collection::default().summary(), few.summary()), (None, None));
        let summary = enough.summary().unwrap();
        assert_eq!((summary.total.typical_us, summary.total.p99_us), (4.0, 4.0));
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let values: Vec<u64> = (1..=100).collect();
        assert_eq!(quantile(&values, 0.5), Some(50));
        assert_eq!(quantile(&values, 0.99), Some(99));
        assert_eq!(quantile(&values, 0.0), Some(1));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
