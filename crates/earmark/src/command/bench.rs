//! `earmark bench`: one experiment, or those of a scenario.

use anyhow::Result;
use linux::privilege::{Privilege, become_capable};

use crate::bench::{self, Outcome};
use crate::cli::BenchArgs;
use crate::experiment::Experiment;
use crate::options::{ExperimentOptions, NicOptions};
use crate::progress::Progress;
use crate::scenario::Scenario;
use crate::table;

/// Runs what `args` ask for, and prints it.
///
/// # Errors
/// If the options do not go together, the world cannot be built, or an experiment fails.
pub fn run(args: &BenchArgs) -> Result<()> {
    let runs = runs(args)?;
    let privilege = become_capable()?;
    for (experiment, nic, options) in &runs {
        let outcome = run_one(*experiment, nic, options, privilege, args.json)?;
        if args.json {
            println!("{}", serde_json::to_string_pretty(&outcome)?);
        } else {
            println!("{}", table::of(&outcome));
        }
    }
    Ok(())
}

fn run_one(
    experiment: Experiment,
    nic: &NicOptions,
    options: &ExperimentOptions,
    privilege: Privilege,
    quiet: bool,
) -> Result<Outcome> {
    bench::run(experiment, nic, options, privilege, &Progress::new(quiet))
}

type Run = (Experiment, NicOptions, ExperimentOptions);

/// What is to be run: the command line over the scenario.
fn runs(args: &BenchArgs) -> Result<Vec<Run>> {
    let (nic, options) = (&args.nic, &args.options);
    match (&args.scenario, args.experiment) {
        (Some(scenario), chosen) => {
            let scenario = Scenario::find(scenario)?;
            let runs = scenario.runs(chosen)?.into_iter();
            Ok(runs.map(|(e, n, o)| (e, nic.clone().or(n), options.clone().or(o))).collect())
        }
        (None, Some(experiment)) => Ok(vec![(experiment, nic.clone(), options.clone())]),
        // Clap asks for one of the two.
        (None, None) => Ok(Vec::new()),
    }
}
