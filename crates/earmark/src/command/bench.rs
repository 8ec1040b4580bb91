//! `earmark bench`: one experiment, or those of a scenario.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use sys::privilege::become_capable;

use crate::cli::BenchArgs;
use crate::table;
use bench::applicability::HostKind;
use bench::compare::{self, Comparison};
use bench::histogram;
use bench::measurement::{Measurement, SCHEMA};
use bench::scenario::{Run, Scenario};
use bench::world::setup;
use report::outln;
use report::progress::Progress;
use report::terminal::Width;
use report::{TradeoffChart, TradeoffPoint};

/// What `--scenario NAME --json` prints.
#[derive(Debug, Serialize)]
struct Outcomes {
    schema_version: u32,
    scenario: String,
    outcomes: Vec<Comparison>,
}

/// Runs what `args` ask for, and prints it.
///
/// # Errors
/// If the options do not go together, the world cannot be built, or an experiment fails.
pub fn run(args: &BenchArgs) -> Result<()> {
    let runs = runs(args)?;
    let uses: Vec<_> = runs.iter().map(|run| run.uses(args.world)).collect();
    args.nic.check_taken(&uses)?;
    args.options.check_taken(&uses)?;
    check(args, &runs)?;
    let privilege = become_capable()?;
    let mut outcomes = Vec::new();
    let width = Width::of_output();
    for Run { experiment, world, nic, options } in &runs {
        let progress = Progress::new(args.json);
        let world = compare::open(args.world.or(*world).unwrap_or_default(), nic, privilege)?;
        let comparison = compare::run(*experiment, nic, options, world, &progress)?;
        if let Some(path) = &args.svg {
            fs::write(path, tradeoff(&comparison).svg())
                .with_context(|| format!("writing {}", path.display()))?;
        }
        if !args.json {
            outln!("{}\n", table::of(&comparison, args.ratios, width));
            if args.histogram {
                print_histograms(&comparison, width);
            }
        }
        outcomes.push(comparison);
    }
    match (args.json, &args.scenario) {
        (false, _) => Ok(()),
        (true, None) => outcomes.iter().try_for_each(print),
        (true, Some(name)) => {
            let scenario = name.clone();
            print(&Outcomes { schema_version: SCHEMA, scenario, outcomes })
        }
    }
}

/// Refuses what cannot work before anything runs.
fn check(args: &BenchArgs, runs: &[Run]) -> Result<()> {
    ensure!(
        args.nic.pcap.is_none() || runs.len() == 1,
        "--pcap: {} experiments would overwrite it, one after the other; name one of them",
        runs.len()
    );
    for run in runs {
        let rounds = compare::check(run.experiment, &run.nic, &run.options)?;
        let is_virtual = run.uses(args.world).place == HostKind::Virtual;
        setup::check(&run.nic)?;
        ensure!(
            run.nic.pcap.is_none() || !is_virtual || rounds == 1,
            "a capture of virtual time holds one round, and this would be {rounds}: give --pcap one \
             setting and one round"
        );
    }
    Ok(())
}

/// Latency against interrupts, or the load of hosts, of every setting that has both.
fn tradeoff(comparison: &Comparison) -> TradeoffChart {
    let point = |result: &Measurement| {
        Some(TradeoffPoint {
            name: result.setting.clone(),
            latency_us: result.latency_us.as_ref()?.p50,
            interrupts_per_s: result.interrupts_per_s?,
            host_busy: result.busiest_host(),
            bulk_mbit: result.bulk_bits_per_s.map(|bits| bits / 1e6),
        })
    };
    let points = comparison.results.iter().filter_map(point).collect();
    TradeoffChart { title: comparison.experiment.clone(), points, ..Default::default() }
}

fn print_histograms(comparison: &Comparison, width: Width) {
    for result in &comparison.results {
        let clients =
            result.clients.map(|clients| format!(", {clients} clients")).unwrap_or_default();
        outln!(
            "{}{clients}\n{}",
            result.setting,
            histogram::bars(&result.latency_histogram, width)
        );
    }
}

fn print(value: &impl Serialize) -> Result<()> {
    outln!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// What is to be run: the command line over the scenario.
fn runs(args: &BenchArgs) -> Result<Vec<Run>> {
    let (nic, options) = (&args.nic, &args.options);
    match (&args.scenario, args.experiment) {
        (Some(scenario), chosen) => {
            let scenario = Scenario::find(scenario)?;
            // A setting on the command line replaces those that the scenario compares.
            let own = nic.name_a_setting();
            let run = |mut run: Run| {
                run.options.compare = run.options.compare.filter(|_| !own);
                run.nic = nic.clone().or(run.nic);
                run.options = options.clone().or(run.options);
                run
            };
            Ok(scenario.runs(chosen)?.into_iter().map(run).collect())
        }
        (None, Some(experiment)) => {
            let (nic, options) = (nic.clone(), options.clone());
            Ok(vec![Run { experiment, world: None, nic, options }])
        }
        // Clap asks for one of the two.
        (None, None) => Ok(Vec::new()),
    }
}
