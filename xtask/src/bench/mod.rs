//! What a packet and a message cost: instructions, decisions per second, frames per second, latency
//! and bandwidth of MX. And, by name, what commands for real hosts are worth: [`explain`],
//! [`probe`], [`tune`]; what virtual time takes: [`virtual_time`]; Intel's cards: [`intel`]; and
//! DPDK's testpmd in our NIC's place: [`testpmd`].
//!
//! Every figure goes to `docs/results/costs.json` with the machine it was measured on. A figure
//! that cannot be measured here is listed with the reason instead of being left out in silence.

mod decisions;
pub(crate) mod environment;
mod explain;
mod figure;
mod files;
mod frames;
mod instructions;
mod intel;
mod mx;
mod probe;
mod testpmd;
mod tune;
mod vhost;
mod virtual_time;

use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

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
    /// Intel's cards at length: frames, link flaps, resets, for docs/results/intel-device.json
    Intel(intel::Options),
    /// Our NIC beside dpdk-testpmd, for docs/results/testpmd.json
    Testpmd(testpmd::Options),
    /// Real time of a round trip in virtual time, for docs/results/virtual.json
    Virtual(virtual_time::Options),
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
        Some(Subject::Intel(options)) => intel::run(options),
        Some(Subject::Testpmd(options)) => testpmd::run(options),
        Some(Subject::Virtual(options)) => virtual_time::run(options),
    }
}

fn costs(options: &CostOptions) -> Result<()> {
    let environment = Environment::read()?;
    let program = files::build("earmark-nic", "cost")?;
    let mut costs =
        Costs { schema: SCHEMA, environment, figures: Vec::new(), not_measured: Vec::new() };
    costs.figures.extend(instructions::measure(&program)?);
    costs.figures.extend(decisions::measure(&program, options.runs)?);
    if !options.core_only {
        let program = files::build("earmark-vhost", "vhost_cost")?;
        costs.figures.extend(vhost::measure(&program, options.runs)?);
        let program = files::build("earmark-mx-io", "mx_cost")?;
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
    files::write(&costs, &options.output)
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
