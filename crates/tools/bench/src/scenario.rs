//! Scenarios: set-ups worth keeping, in TOML.
//!
//! A scenario is a description, a NIC and a cable, and experiments on them. Its keys are the flags
//! of the command line without their dashes, so whatever a scenario does can be typed, too.

use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::applicability::Use;
use crate::experiment::Experiment;
use crate::options::{ExperimentOptions, NicOptions};
use crate::suggestions::SuggestedValues;
use crate::world::WorldKind;
use report::names::remark;

/// Those that come with Earmark.
const BUILT_IN: [(&str, &str); 10] = [
    ("e1000", include_str!("../../../../scenarios/e1000.toml")),
    ("phase", include_str!("../../../../scenarios/phase.toml")),
    ("bge", include_str!("../../../../scenarios/bge.toml")),
    ("odroid", include_str!("../../../../scenarios/odroid.toml")),
    ("mixed", include_str!("../../../../scenarios/mixed.toml")),
    ("openmx", include_str!("../../../../scenarios/openmx.toml")),
    ("bursts", include_str!("../../../../scenarios/bursts.toml")),
    ("intel", include_str!("../../../../scenarios/intel.toml")),
    ("strategies", include_str!("../../../../scenarios/strategies.toml")),
    ("lane", include_str!("../../../../scenarios/lane.toml")),
];

/// Reads a file that is no larger than so many bytes.
type ReadText = fn(&Path, u64) -> io::Result<String>;

/// No scenario has more bytes.
const LARGEST: u64 = 1 << 20;

/// The parser of a scenario's name, or that of a file.
pub fn offered() -> SuggestedValues<String> {
    SuggestedValues::new(BUILT_IN.map(|(name, _)| name).to_vec())
}

/// A scenario file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One line on what it shows.
    pub title: String,
    /// What was seen, where, and what to look for.
    #[serde(rename = "story")]
    pub description: String,
    world: Option<WorldKind>,
    #[serde(default)]
    nic: NicOptions,
    #[serde(rename = "experiment")]
    experiments: Vec<Entry>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    run: Experiment,
    world: Option<WorldKind>,
    #[serde(default)]
    nic: NicOptions,
    #[serde(default)]
    options: ExperimentOptions,
}

/// One experiment with everything that is said of it.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name of the experiment.
    pub experiment: Experiment,
    /// Where it runs, if that is said.
    pub world: Option<WorldKind>,
    /// The NIC and the cable.
    pub nic: NicOptions,
    /// What the experiment does.
    pub options: ExperimentOptions,
}

impl Run {
    /// What it looks at, if it runs in its own world or in the one that was `chosen`.
    pub fn uses(&self, chosen: Option<WorldKind>) -> Use {
        let world = chosen.or(self.world).unwrap_or_default();
        Use { experiment: Some(self.experiment), place: self.nic.place(world) }
    }
}

impl Scenario {
    /// The names and texts of those that come with Earmark.
    pub fn built_in() -> impl Iterator<Item = (&'static str, &'static str)> {
        BUILT_IN.into_iter()
    }

    /// The text of the one that comes with Earmark under this name, or of the file of this name.
    pub fn text(name: &str, read_text: ReadText) -> Result<String> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Ok((*text).to_owned());
        }
        read_text(Path::new(name), LARGEST).with_context(|| {
            let names = BUILT_IN.map(|(name, _)| name).join(", ");
            let meant = remark(name, BUILT_IN.iter().map(|(name, _)| *name));
            format!("read scenario {name}; built in are {names}{meant}")
        })
    }

    /// Reads the text of the scenario `name`.
    pub fn parse_named(name: &str, text: &str) -> Result<Self> {
        Self::parse(text).with_context(|| format!("read scenario {name}"))
    }

    /// Reads a scenario.
    pub fn parse(text: &str) -> Result<Self> {
        let scenario: Self = toml::from_str(text)?;
        let runs = scenario.runs(None)?;
        for (entry, run) in scenario.experiments.iter().zip(&runs) {
            let uses = [run.uses(None)];
            let checked = entry.nic.check_taken(&uses).and(entry.options.check_taken(&uses));
            checked.with_context(|| format!("experiment {}", run.experiment.name()))?;
        }
        // What is said for all of them, at least one must take.
        scenario.nic.check_taken(&runs.iter().map(|run| run.uses(None)).collect::<Vec<_>>())?;
        Ok(scenario)
    }

    /// Its experiments, or the ones called `chosen`, each with its options.
    pub fn runs(&self, chosen: Option<Experiment>) -> Result<Vec<Run>> {
        let wanted = |entry: &&Entry| chosen.is_none_or(|chosen| chosen == entry.run);
        let run = |entry: &Entry| Run {
            experiment: entry.run,
            world: entry.world.or(self.world),
            nic: entry.nic.clone().or(self.nic.clone()),
            options: entry.options.clone(),
        };
        let runs: Vec<_> = self.experiments.iter().filter(wanted).map(run).collect();
        if runs.is_empty() {
            let names: Vec<_> = self.experiments.iter().map(|entry| entry.run.name()).collect();
            bail!("this scenario has no such experiment; it has {}", names.join(", "));
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_scenario_can_be_read() {
        for (name, text) in Scenario::built_in() {
            let scenario =
                Scenario::parse(text).unwrap_or_else(|error| panic!("{name}: {error:#}"));
            assert!(!scenario.runs(None).unwrap().is_empty(), "{name}");
        }
    }

    #[test]
    fn the_experiment_wins_over_the_scenario() {
        let scenario = Scenario::parse(
            "title = ''\nstory = ''\nnic = { queues = 2, ring = 64 }\n\
             [[experiment]]\nrun = 'tcp-rr'\nnic = { queues = 4 }",
        );
        let runs = scenario.unwrap().runs(Some(Experiment::TcpRr)).unwrap();
        assert_eq!((runs[0].nic.queues, runs[0].nic.ring), (Some(4), Some(64)));
    }
    #[test]
    fn a_missing_scenario_names_those_there_are() {
        let missing = Scenario::text("e2000", |_, _| Err(io::ErrorKind::NotFound.into()));
        let error = format!("{:#}", missing.unwrap_err());
        assert!(error.contains("e1000") && error.contains("e2000"), "{error}");
    }
}
