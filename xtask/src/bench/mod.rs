//! What a packet and a message cost: instructions, decisions per second, frames per second, latency
//! and bandwidth of MX.
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
mod vhost;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::{repo, shell};
use environment::Environment;
use figure::Figure;

/// The version of the file's layout.
const SCHEMA: &str = "earmark-costs/1";

/// What is measured, if not what packets and messages cost.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Subject {
    /// `earmark explain`: planted causes, sum error, overhead
    Explain,
}

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Measure this instead of what packets and messages cost
    #[arg(value_enum)]
    subject: Option<Subject>,
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
    if let Some(Subject::Explain) = options.subject {
        return explain::run(options.runs);
    }
    let environment = Environment::read()?;
    let program = build("earmark-nic", "cost")?;
    let mut costs =
        Costs { schema: SCHEMA, environment, figures: Vec::new(), not_measured: Vec::new() };
    costs.figures.extend(instructions::measure(&program)?);
    costs.figures.extend(decisions::measure(&program, options.runs)?);
    if !options.core_only {
        let program = build("earmark-linux", "vhost_cost")?;
        costs.figures.extend(vhost::measure(&program, options.runs)?);
        let program = build("earmark-linux", "mx_cost")?;
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
    let path = repo::root().join(&options.output);
    write(&costs, &path).with_context(|| format!("writing {}", path.display()))?;
    println!("\nwritten to {}", path.display());
    Ok(())
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

fn write(costs: &Costs, path: &std::path::Path) -> Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, serde_json::to_string_pretty(costs)? + "\n")?;
    Ok(())
}
