//! `earmark bench`: one experiment, or those of a scenario.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use sys::{ctrl_c, files};

use super::merge::{Merging, print_shard};
use crate::cli::{BenchArgs, BenchOutput};
use crate::table;
use bench::compare::{self, Comparison};
use bench::histogram;
use bench::scenario::{Run, Scenario};
use bench::slice::MissingProgram;
use bench::turns::{Played, Turns};
use bench::world::WorldKind;
use report::progress::Progress;
use report::terminal::Width;
use report::{errln, json, outln};
use sys::files::read_text;
use worlds::sweep::{Merged, PlayedRuns};
use worlds::{Terminal, setup};

/// What `--scenario NAME --json` prints.
#[derive(Debug, Serialize)]
struct Outcomes {
    scenario: String,
    outcomes: Vec<Comparison>,
}

/// The option whose file shards keep.
const SCENARIO: &str = "scenario";

/// Runs what `args` ask for, or one shard of it, and prints it.
pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    let inputs = inputs(args)?;
    let runs = runs(args, &inputs)?;
    let uses: Vec<_> = runs.iter().map(|run| run.uses(args.world)).collect();
    args.nic.check_taken(&uses)?;
    args.options.check_taken(&uses)?;
    let turns = Turns::of_runs(&runs, args.world)?;
    check(args, &runs, &turns)?;
    let privilege = worlds::privilege(turns.iter().map(Turns::world))?;
    ctrl_c::watch().context("take signals")?;
    let progress = Progress::new(args.output.json);
    let caller = Terminal(&progress);
    let open = |(run, turns): (&Run, &Turns<'_>)| worlds::open(turns.world(), &run.nic, privilege);
    if let Some(shard) = args.shard.shard {
        let (mut played, mut left_out) = (Vec::new(), Vec::new());
        for (run, turns) in runs.iter().zip(&turns) {
            played.push(match turns.play(shard, || open((run, turns)), &caller) {
                Err(error) if runs.len() > 1 && error.is::<MissingProgram>() => {
                    left_out.push(leave_out(run, &format!("{error:#}")));
                    Played { left_out: Some(format!("{error:#}")), ..Played::default() }
                }
                played => played?,
            });
            // Half of a shard is none.
            ctrl_c::check()?;
        }
        let cases = turns.iter().map(Turns::cases).sum();
        print_shard(shard, inputs, cases, &PlayedRuns(played))?;
        return all_was_played(&left_out);
    }
    let (mut outcomes, mut left_out) = (Vec::new(), Vec::new());
    for each in runs.iter().zip(&turns) {
        let comparison = match compare::run(each.1, open(each)?, &caller) {
            Err(error) if runs.len() > 1 && error.is::<MissingProgram>() => {
                left_out.push(leave_out(each.0, &format!("{error:#}")));
                continue;
            }
            comparison => comparison?,
        };
        draw(&comparison, &args.output)?;
        if !args.output.json {
            show(&comparison, &args.output);
        }
        outcomes.push(comparison);
        if ctrl_c::is() {
            errln!("interrupted; this is what was measured until then");
            break;
        }
    }
    match (args.output.json, &args.scenario) {
        (false, _) => {}
        (true, None) => outcomes.iter().try_for_each(json::print)?,
        (true, Some(_)) => json::print(&Outcomes::new(args, outcomes))?,
    }
    all_was_played(&left_out)
}

/// Says that an experiment is left out; the sentence.
fn leave_out(run: &Run, why: &str) -> String {
    let text = format!("{} is left out: {why}", run.experiment.name());
    errln!("{text}\n");
    text
}

fn all_was_played(left_out: &[String]) -> Result<()> {
    ensure!(left_out.is_empty(), "not all was played: {}", left_out.join("; "));
    Ok(())
}

/// Makes one result of what the shards of `of` have.
pub(crate) fn merge(of: &BenchArgs, merging: &Merging<'_>, output: &BenchOutput) -> Result<()> {
    ensure!(
        of.scenario.is_none() || output.svg.is_none(),
        "--svg: a scenario has several pictures; drop it"
    );
    let merged: Merged<PlayedRuns> = merging.results()?;
    let partial = merged.partial.clone();
    let runs = runs(of, &merged.sweep.inputs)?;
    let turns = Turns::of_runs(&runs, of.world)?;
    let played = PlayedRuns::merge(&turns, merged)?;
    let left_out: Vec<String> = runs
        .iter()
        .zip(&played)
        .filter_map(|(run, played)| Some(leave_out(run, played.left_out.as_deref()?)))
        .collect();
    let all = turns.iter().zip(played);
    // An experiment of which all shards are missing, or that one has left out, has no result.
    let some = all.filter(|(_, played)| {
        played.left_out.is_none() && (partial.is_none() || !played.cases.is_empty())
    });
    let outcomes: Vec<_> =
        some.map(|(turns, played)| compare::of(turns, played)).collect::<Result<_>>()?;
    outcomes.iter().try_for_each(|comparison| draw(comparison, output))?;
    let show = |outcomes: &[Comparison]| outcomes.iter().for_each(|it| show(it, output));
    match &of.scenario {
        None => {
            let only = outcomes.first().context("none of its shards has a case")?;
            merging.finish(only, partial.as_ref(), || show(&outcomes))
        }
        Some(_) => {
            let outcomes = Outcomes::new(of, outcomes);
            merging.finish(&outcomes, partial.as_ref(), || show(&outcomes.outcomes))?;
            all_was_played(&left_out)
        }
    }
}

impl Outcomes {
    fn new(args: &BenchArgs, outcomes: Vec<Comparison>) -> Self {
        let scenario = args.scenario.clone().unwrap_or_default();
        Self { scenario, outcomes }
    }
}

/// Refuses what cannot work before anything runs.
fn check(args: &BenchArgs, runs: &[Run], turns: &[Turns<'_>]) -> Result<()> {
    ensure!(
        args.nic.pcap.is_none() || runs.len() == 1,
        "--pcap: {} experiments would overwrite it, one after the other; name one of them",
        runs.len()
    );
    ensure!(
        args.shard.shard.is_none() || args.nic.pcap.is_none() && args.output.svg.is_none(),
        "--pcap and --svg: a shard writes neither; drop them, and give `earmark merge` the --svg"
    );
    for (run, turns) in runs.iter().zip(turns) {
        setup::check(&run.nic)?;
        ensure!(
            run.nic.pcap.is_none() || turns.world() != WorldKind::Virtual || turns.len() == 1,
            "a capture of virtual time holds one round, and this would be {}: give --pcap one \
             setting and one round",
            turns.len()
        );
    }
    Ok(())
}

/// Draws a comparison, if that is asked for.
fn draw(comparison: &Comparison, output: &BenchOutput) -> Result<()> {
    let Some(path) = &output.svg else { return Ok(()) };
    files::write(path, comparison.tradeoff().svg().as_bytes())
        .with_context(|| format!("writing {}", path.display()))
}

/// Prints a comparison for people.
fn show(comparison: &Comparison, output: &BenchOutput) {
    let width = Width::of_output();
    outln!("{}\n", table::of(comparison, output.ratios, width));
    if output.histogram {
        print_histograms(comparison, width);
    }
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

/// The text of the scenario, if there is one.
fn inputs(args: &BenchArgs) -> Result<BTreeMap<String, String>> {
    let read = |name: &String| Ok((SCENARIO.to_owned(), Scenario::text(name, read_text)?));
    args.scenario.iter().map(read).collect()
}

/// What is to be run: the command line over the scenario.
fn runs(args: &BenchArgs, inputs: &BTreeMap<String, String>) -> Result<Vec<Run>> {
    let (nic, options) = (&args.nic, &args.options);
    match (&args.scenario, args.experiment) {
        (Some(name), chosen) => {
            let text = inputs.get(SCENARIO).context("the text of the scenario is missing")?;
            let scenario = Scenario::parse_named(name, text)?;
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
