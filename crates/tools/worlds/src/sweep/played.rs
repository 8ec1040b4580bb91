//! What shards of `earmark bench` and `earmark reproduce` have played.

use anyhow::{Result, ensure};
use bench::shard::Shard;
use bench::turns::{Played, Turns};
use serde::{Deserialize, Serialize};

use super::{Merged, Results};

/// What a process has played of each of several experiments, in their order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlayedRuns(pub Vec<Played>);

impl Results for PlayedRuns {
    fn repeats(&self, other: &Self) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs.all(|(one, two)| one.repeats(two))
    }
}

impl PlayedRuns {
    /// What all shards have played of each of `all`.
    pub fn merge(all: &[Turns<'_>], merged: Merged<Self>) -> Result<Vec<Played>> {
        let cases: u64 = all.iter().map(Turns::cases).sum();
        ensure!(merged.cases == cases, "its shards say that they have other cases");
        let mut runs: Vec<Vec<(Shard, Played)>> = all.iter().map(|_| Vec::new()).collect();
        for (shard, Self(played)) in merged.shards {
            ensure!(played.len() == all.len(), "shard {shard} has not the results of each run");
            for (run, played) in runs.iter_mut().zip(played) {
                run.push((shard, played));
            }
        }
        all.iter().zip(runs).map(|(turns, shards)| turns.merge(shards)).collect()
    }
}
