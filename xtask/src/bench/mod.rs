//! What a packet and a message cost: instructions, decisions per second, frames per second, latency
//! and bandwidth of MX. And, by name, what commands for real hosts are worth: [`explain`],
//! [`probe`], [`tune`].
//!
//! Every figure goes to `docs/results/costs.json` with the machine it was measured on. A figure
//! that cannot be measured here is listed with the reason instead of being left out in silence.

mod decisions;
pub(crate) mod environment;
mod explain;
mod figure;
mod frames;
mod instructions;
mod mx;
mod probe;
mod tune;
mod vhost;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{repo, shell};
use environment::Environment;
use figure::Figure;

/// The version of the file's layout.
const SCHEMA: &str = "earmark-costs/1";

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    subject: Option<Subject>,
    #[command(flatten)]
    costs: CostOptions,
}

/// What is measured, if not what a packet and a message cost.
#[derive(clap::Subcommand)]
enum Subject {
    /// `earmark probe` on secret settings, for docs/results/probe.json
    Probe(probe::Options),
    /// `earmark explain`: planted causes, sum error, overhead, for docs/results/explain.json
    Explain {
        /// How often each cause is planted
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
    },
    /// `earmark tune` against every setting, for docs/results/tune.json
    Tune(tune::Options),
}

#[derive(clap::Args)]
struct CostOptions {
    /// Runs of each timed figure; the table shows their median
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Leave out the frames per second through ports, which need Linux and the `earmark` command
    #[arg(long)]
    core_only: bool,
    /// Where to write the figures, from the root of the repository
    #[arg(long, default_value = "docs/results/costs.json")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Costs {
    schema: &'static str,
    environment: Environment,
    figures: Vec<Figure>,
    not_measured: Vec<NotMeasured>,
}

#[derive(Serialize)]
struct NotMeasured {
    name: String,
    reason: String,
}

/// Measures, prints a table, writes the file.
pub(crate) fn run(options: &Options) -> Result<()> {
    match &options.subject {
        None => costs(&options.costs),
        Some(Subject::Probe(options)) => probe::run(options),
        Some(Subject::Explain { runs }) => explain::run(*runs),
        Some(Subject::Tune(options)) => tune::run(options),
    }
}

fn costs(options: &CostOptions) -> Result<()> {
    let environment = Environment::read()?;
    let program = build("earmark-nic", "cost")?;
    let mut costs =
        Costs { schema: SCHEMA, environment, figures: Vec::new(), not_measured: Vec::new() };
    costs.figures.extend(instructions::measure(&program)?);
    costs.figures.extend(decisions::measure(&program, options.runs)?);
    if !options.core_only {
        let program = build("earmark-vhost", "vhost_cost")?;
        costs.figures.extend(vhost::measure(&program, options.runs)?);
        let program = build("earmark-mx-io", "mx_cost")?;
        match mx::measure(&program, options.runs) {
            Ok(figures) => costs.figures.extend(figures),
            // It needs hosts.
            Err(error) => costs
                .not_measured
                .push(NotMeasured { name: "MX messages".to_owned(), reason: format!("{error:#}") }),
        }
        for frame in frames::SIZES {
            match frames::measure(frame, options.runs) {
                Ok(figure) => costs.figures.push(figure),
                Err(error) => costs
                    .not_measured
                    .push(NotMeasured { name: frames::name(frame), reason: format!("{error:#}") }),
            }
        }
    }
    print(&costs);
    write(&costs, &options.output)
}

/// Builds the measuring loops as users build: optimised.
fn build(package: &str, example: &str) -> Result<PathBuf> {
    let arguments = ["build", "--release", "--package", package, "--example", example];
    shell::run(&mut shell::cargo(arguments))?;
    Ok(repo::target_directory()?.join("release/examples").join(example))
}

fn print(costs: &Costs) {
    println!("\n{}", costs.environment);
    println!("{}", Figure::HEADING);
    for figure in &costs.figures {
        println!("{figure}");
    }
    for missing in &costs.not_measured {
        println!("{}: not measured: {}", missing.name, missing.reason);
    }
}

/// Writes the figures of one world to `path`, beside what it has of others.
fn write_world(figures: &impl Serialize, schema: &str, world: &str, path: &Path) -> Result<()> {
    let mut all: Value = match fs::read_to_string(repo::root().join(path)) {
        Ok(text) => {
            serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?
        }
        Err(_) => json!({}),
    };
    all["schema"] = schema.into();
    all[world] = serde_json::to_value(figures)?;
    write(&all, path)
}

/// Writes figures to `path`, which counts from the root of the repository.
fn write(figures: &impl Serialize, path: &Path) -> Result<()> {
    let path = repo::root().join(path);
    let write = || -> Result<()> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        Ok(fs::write(&path, serde_json::to_string_pretty(figures)? + "\n")?)
    };
    write().with_context(|| format!("writing {}", path.display()))?;
    println!("\nwritten to {}", path.display());
    Ok(())
}
