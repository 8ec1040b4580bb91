//! What is played: traffic, and modes of Intel's drivers, from `adaptive.toml`.

use anyhow::{Context, Result};
use bench::experiment::{Experiment, Plan};
use bench::options::{ExperimentOptions, Text};
use bench::world::adaptive::Observed;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    traffic: Vec<TrafficData>,
    mode: Vec<Mode>,
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

/// Who moderates: the parameters of the driver, and the NIC's setting.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mode {
    #[serde(skip_serializing)]
    nic: String,
    #[serde(rename(serialize = "mode"))]
    pub(super) name: String,
    #[serde(default, rename(deserialize = "driver-options"))]
    pub(super) driver_options: Vec<String>,
    #[serde(default = "of_driver")]
    pub(super) setting: String,
}

fn of_driver() -> String {
    "driver".to_owned()
}

fn data() -> Result<Data> {
    toml::from_str(include_str!("adaptive.toml")).context("read adaptive.toml")
}

/// The modes of a NIC, by the name of its driver.
pub(super) fn modes(driver: &str) -> Result<Vec<Mode>> {
    let mut modes = data()?.mode;
    modes.retain(|mode| mode.nic == driver);
    Ok(modes)
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
        Ok(data()?.traffic.into_iter().map(traffic).collect())
    }

    pub(super) fn observed(&self) -> Observed<'_> {
        Observed { plan: &self.plan, late: &self.late }
    }
}
