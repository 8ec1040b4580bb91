//! Many paths as one table.
//!
//! Quantiles of stages do not add up to the quantile of the whole. So besides them there are two
//! columns that do: *typical*, the mean of the requests in the middle tenth by their total, and
//! *slow*, the mean of the slowest hundredth.

use base::quantiles::{Quantiles, nearest_rank};
use schemars::JsonSchema;
use serde::Serialize;

use super::stages::{Lengths, Stage};

/// Paths that are kept at most: more do not make quantiles better.
const MAX_PATHS: usize = 200_000;

/// Fewer paths than this make no summary.
const FEWEST: usize = 5;

/// What many paths take, in a stage or as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct StageTimes {
    /// The mean of typical requests, in microseconds.
    pub typical_us: f64,
    /// The mean of the slowest hundredth, in microseconds.
    pub slow_us: f64,
    pub quantiles_us: Quantiles,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct StageRow {
    pub stage: Stage,
    #[serde(flatten)]
    pub times: StageTimes,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Summary {
    pub requests: usize,
    pub stages: Vec<StageRow>,
    pub total: StageTimes,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Collection(Vec<Lengths>);

impl Collection {
    /// Just enough paths of these lengths for a table.
    #[cfg(test)]
    pub(crate) fn of(lengths: Lengths) -> Self {
        Self(vec![lengths; FEWEST])
    }

    pub(crate) fn add(&mut self, lengths: Lengths) {
        if self.0.len() < MAX_PATHS {
            self.0.push(lengths);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

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

    pub(crate) fn median(&self, stage: Stage) -> Option<u64> {
        nearest_rank(&sorted(self.0.iter().map(|lengths| lengths.of(stage))), 500)
    }

    /// Moves up to that much of each path from one stage to another.
    pub(crate) fn shift(&mut self, from: Stage, to: Stage, nanos: u64) {
        self.0.iter_mut().for_each(|lengths| lengths.shift(from, to, nanos));
    }

    /// The table; `None` if there are too few paths for one.
    pub(crate) fn summary(&self) -> Option<Summary> {
        if self.len() < FEWEST {
            return None;
        }
        let mut ranked = self.0.clone();
        ranked.sort_by_key(Lengths::total);
        let middle = around_middle(&ranked);
        let slow = &ranked[ranked.len() - ranked.len().div_ceil(100)..];
        let totals = sorted(ranked.iter().map(Lengths::total));
        let times = |of: &dyn Fn(&Lengths) -> u64, sorted: &[u64]| StageTimes {
            typical_us: mean_us(middle, of),
            slow_us: mean_us(slow, of),
            quantiles_us: Quantiles::of_sorted(sorted).unwrap_or_default(),
        };
        let stages = Stage::ALL.into_iter().filter_map(|stage| {
            let sorted = sorted(ranked.iter().map(|lengths| lengths.of(stage)));
            sorted.last().filter(|most| **most > 0)?;
            Some(StageRow { stage, times: times(&|lengths| lengths.of(stage), &sorted) })
        });
        Some(Summary {
            requests: ranked.len(),
            stages: stages.collect(),
            total: times(&Lengths::total, &totals),
        })
    }
}

impl Summary {
    pub(crate) fn largest(&self) -> Option<&StageRow> {
        self.stages.iter().max_by(|a, b| a.times.typical_us.total_cmp(&b.times.typical_us))
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

fn mean_us(paths: &[Lengths], of: &dyn Fn(&Lengths) -> u64) -> f64 {
    let sum: u64 = paths.iter().map(of).sum();
    sum as f64 / paths.len().max(1) as f64 / 1e3
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
        assert!((sum(|row| row.times.typical_us) - summary.total.typical_us).abs() < 1e-6);
        assert!((sum(|row| row.times.slow_us) - summary.total.slow_us).abs() < 1e-6);
        assert_eq!(summary.largest().unwrap().stage, Stage::Far);
        assert!((summary.total.slow_us - 5_100.0).abs() < 1e-6);
        assert_eq!(summary.total.quantiles_us.p99, 110.999);
        // Stages that never occur are left out.
        let stages: Vec<Stage> = summary.stages.iter().map(|row| row.stage).collect();
        assert_eq!(stages, [Stage::Far, Stage::WakeUp]);
    }

    #[test]
    fn few_paths_have_no_summary() {
        let enough = Collection::of(lengths(4_000, 0));
        let few = Collection(enough.0[1..].to_vec());
        assert_eq!((Collection::default().summary(), few.summary()), (None, None));
        let summary = enough.summary().unwrap();
        assert_eq!((summary.total.typical_us, summary.total.quantiles_us.p99), (4.0, 4.0));
    }
}
