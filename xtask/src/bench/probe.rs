//! The blind tests of hold inference: what `docs/results/probe.json` says of `earmark probe`.
//!
//! In the `model` and the `hindered` world the real `nic` crate runs in made-up time
//! (`crates/blind`); in the `live` and the `virtual` world hosts of ours do
//! (`earmark probe-blind`). The seeds that are reported were never tuned on: those below
//! [`FIRST_SEED`] are for that.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{repo, shell};

/// The first seed that is reported.
const FIRST_SEED: u64 = 700_000;

/// The version of the file's layout.
const SCHEMA: &str = "earmark-probe/1";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where to play the cases
    #[arg(long, value_enum, default_value_t = World::Model)]
    world: World,
    /// How many cases
    #[arg(long, default_value_t = 400)]
    cases: u64,
    /// The seed of the first one; those below the usual one were tuned on
    #[arg(long, default_value_t = FIRST_SEED)]
    first_seed: u64,
    /// Judge what the world's cases heard, kept by `earmark probe-blind --record`, and play none
    #[arg(long, value_name = "FOLDER")]
    recorded: Option<PathBuf>,
    /// Where to write, from the root of the repository
    #[arg(long, default_value = "docs/results/probe.json")]
    output: PathBuf,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum World {
    /// The `nic` crate in made-up time
    Model,
    /// The same with an obstacle in each case: few probes, probes far apart, a limit of answers,
    /// machines under load
    Hindered,
    /// Hosts of ours, real time
    Live,
    /// Guests of ours, virtual time
    Virtual,
}

impl World {
    const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Hindered => "hindered",
            Self::Live => "live",
            Self::Virtual => "virtual",
        }
    }
}

/// Plays the cases, prints the score, and writes it beside that of the other world.
pub(crate) fn run(options: &Options) -> Result<()> {
    let outcome = match options.world {
        World::Model | World::Hindered => model(options)?,
        World::Live | World::Virtual => on_hosts(options)?,
    };
    println!("{:#}", outcome["table"]);
    super::files::write_world(&summary(&outcome)?, SCHEMA, options.world.name(), &options.output)
}

fn model(options: &Options) -> Result<Value> {
    ensure!(options.recorded.is_none(), "--recorded is for the live and the virtual world");
    let program = super::files::build("earmark-blind", "blind")?;
    let mut command = shell::command(program);
    command.args([options.first_seed.to_string(), options.cases.to_string(), "--json".to_owned()]);
    if matches!(options.world, World::Hindered) {
        command.arg("--hindered");
    }
    parsed(&shell::output(&mut command)?)
}

fn on_hosts(options: &Options) -> Result<Value> {
    if matches!(options.world, World::Virtual) && options.recorded.is_none() {
        crate::kernel::ensure()?;
    }
    shell::run(&mut shell::cargo(["build", "--release", "--package", "earmark"]))?;
    let mut command = shell::command(repo::target_directory()?.join("release/earmark"));
    command.args([
        "probe-blind",
        "--world",
        options.world.name(),
        "--json",
        "--cases",
        &options.cases.to_string(),
    ]);
    command.args(["--first-seed", &options.first_seed.to_string()]);
    if let Some(folder) = &options.recorded {
        command.arg("--replay").arg(folder);
    }
    parsed(&shell::output(&mut command)?)
}

fn parsed(text: &str) -> Result<Value> {
    serde_json::from_str(text).context("reading the score")
}

/// What is kept: the table, and of the single scores those that are wrong. That the data cannot
/// tell is no error, and the table counts it.
fn summary(outcome: &Value) -> Result<Value> {
    let mut kept = outcome.clone();
    let Some(scores) = outcome["scores"].as_array() else { bail!("the score has no `scores`") };
    let is_wrong =
        |score: &&Value| score["right"] != json!(true) && score["outcome"] != json!("cannot_tell");
    kept["scores"] = Value::Null;
    kept["wrong"] = scores.iter().filter(is_wrong).cloned().collect();
    if let Some(fields) = kept.as_object_mut() {
        fields.remove("scores");
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_scores_and_those_that_cannot_tell_are_left_out() {
        let right = json!({"right": true, "outcome": "right"});
        let limit_is_wrong = json!({"right": false, "outcome": "right"});
        let wrong = json!({"right": false, "outcome": "wrong"});
        let unclear = json!({"right": false, "outcome": "cannot_tell"});
        let scores = [&right, &limit_is_wrong, &wrong, &unclear];
        let kept = summary(&json!({"table": {}, "scores": scores})).unwrap();
        assert_eq!(kept, json!({"table": {}, "wrong": [limit_is_wrong, wrong]}));
        assert!(summary(&json!({})).is_err());
    }
}
