//! The blind tests of hold inference: what `docs/results/probe.json` says of `earmark probe`.
//!
//! `earmark probe-blind` plays them: in the `model` and the `hindered` world the real `nic` crate
//! in made-up time (`crates/tools/blind`), in the `live` and the `virtual` world hosts of ours. The
//! seeds that are reported were never tuned on: those below [`FIRST_SEED`] are for that.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{repo, shell};

/// The first seed that is reported.
const FIRST_SEED: u64 = 800_000;

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
    /// Play only part I of N, and print what `earmark merge` takes
    #[arg(long, value_name = "I/N", conflicts_with_all = ["recorded", "merged"])]
    shard: Option<String>,
    /// Keep the score that `earmark merge --output FILE` has written, and play none
    #[arg(long, value_name = "FILE", conflicts_with = "recorded")]
    merged: Option<PathBuf>,
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
    let text = match &options.merged {
        Some(path) => {
            fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?
        }
        None => play(options)?,
    };
    if options.shard.is_some() {
        println!("{text}");
        return Ok(());
    }
    let outcome: Value = serde_json::from_str(&text).context("read the score")?;
    println!("{:#}", outcome["table"]);
    super::files::write_world(&summary(&outcome)?, SCHEMA, options.world.name(), &options.output)
}

/// What `earmark probe-blind` prints.
fn play(options: &Options) -> Result<String> {
    if matches!(options.world, World::Virtual) && options.recorded.is_none() {
        crate::kernel::ensure()?;
    }
    shell::run(&mut shell::cargo(["build", "--release", "--package", "earmark"]))?;
    let mut command = shell::command(repo::target_directory()?.join("release/earmark"));
    command.args(["probe-blind", "--json", "--world", options.world.name()]);
    command.args(["--cases", &options.cases.to_string()]);
    command.args(["--first-seed", &options.first_seed.to_string()]);
    if let Some(folder) = &options.recorded {
        command.arg("--replay").arg(folder);
    }
    if let Some(shard) = &options.shard {
        command.args(["--shard", shard]);
    }
    shell::output(&mut command)
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
