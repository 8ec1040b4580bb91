//! What is played, from `adaptive.toml`.

use anyhow::{Context, Result};
use bench::experiment::{Experiment, Plan};
use bench::options::{ExperimentOptions, Text};
use serde::Deserialize;
use worlds::adaptive::Observed;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    traffic: Vec<TrafficData>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrafficData {
    name: String,
    about: String,
    run: Experiment,
    #[serde(default)]
    options: ExperimentOptions,
    more: Option<ExperimentOptions>,
    #[serde(default)]
    late: Vec<usize>,
}

/// What is sent, and which players go late.
pub(super) struct Traffic {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) plan: Plan,
    late: Vec<usize>,
}

impl Traffic {
    /// Every kind, each of so many seconds; of one that changes at half-time, what comes after is
    /// what is measured.
    pub(super) fn all(duration_s: f64) -> Result<Vec<Self>> {
        let traffic = |TrafficData { name, about, run, options, more, late }| {
            let warmup_s = if late.is_empty() { 0.0 } else { duration_s / 2.0 };
            let plan = |options: ExperimentOptions| {
                let clients = options.clients.as_ref().and_then(|Text(range)| range.each().next());
                let (warmup, duration) = (Some(warmup_s), Some(duration_s - warmup_s));
                run.plan(&ExperimentOptions { warmup, duration, ..options }, clients, 1)
            };
            let mut whole = plan(options);
            whole.players.extend(more.map(|more| plan(more).players.remove(1)));
            Self { name, about, plan: whole, late }
        };
        let data: Data =
            toml::from_str(include_str!("adaptive.toml")).context("read adaptive.toml")?;
        Ok(data.traffic.into_iter().map(traffic).collect())
    }

    pub(super) fn observed(&self) -> Observed<'_> {
        Observed { plan: &self.plan, late: &self.late }
    }
}
