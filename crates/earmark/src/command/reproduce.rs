//! `earmark reproduce`: what the documents report, made again, beside their numbers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use sys::files;

use super::merge::{Merging, print_shard};
use bench::shard::ShardArgs;
use bench::suggestions::SuggestedValues;
use report::progress::Progress;
use report::terminal::{Table, Width};
use report::{json, outln};
use reproduce::claim::Agreement;
use reproduce::npb::Npb;
use reproduce::outcome::{Outcome, PartOutcome, SeedOutcome};
use reproduce::page;
use reproduce::seed::Seed;
use reproduce::{Runs, Terms};
use worlds::sweep::Merged;
use worlds::sweep::PlayedRuns;

#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// A document (e1000, bge, odroid, openmx), or DOCUMENT/PART such as openmx/table1; without it
    /// all
    #[arg(value_name = "SEED|SEED/TABLE", value_parser = offered(), hide_possible_values = true)]
    seed: Option<String>,
    /// A quarter of the time for each run
    #[arg(long)]
    quick: bool,
    /// What `cargo xtask bench npb` has measured, for the tables of the NAS Parallel Benchmarks
    #[arg(long, value_name = "FILE")]
    npb: Option<PathBuf>,
    /// List what there is, and run nothing
    #[arg(long, conflicts_with_all = ["quick", "json", "shard"])]
    list: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Where the HTML report goes [default: earmark-reproduction.html; with --json, nowhere]
    #[arg(long, value_name = "FILE", conflicts_with = "shard")]
    report: Option<PathBuf>,
    #[command(flatten)]
    shard: ShardArgs,
}

/// The exit status if a run failed, so that some numbers were not made. docs/reproduce.md promises
/// it.
const NOT_ALL_MADE: u8 = 3;

/// Where the report goes without --report.
const REPORT: &str = "earmark-reproduction.html";

fn offered() -> SuggestedValues<String> {
    SuggestedValues::new(Seed::documents().collect())
}

/// The option whose file shards keep.
const NPB: &str = "npb";

/// Runs what was asked for, or one shard of it, prints each number beside ours, and writes the
/// report.
pub(crate) fn run(args: &ReproduceArgs) -> Result<ExitCode> {
    let seeds = Seed::chosen(args.seed.as_deref())?;
    if args.list {
        outln!("{}", list(&seeds).fit(Width::of_output()));
        return Ok(ExitCode::SUCCESS);
    }
    let inputs = inputs(args)?;
    let npb = npb(args, &inputs)?;
    let terms = Terms { quick: args.quick, npb: npb.as_ref() };
    let runs = Runs::of(&seeds, &terms)?;
    let privilege = runs.privilege()?;
    let progress = Progress::new(args.json);
    if let Some(shard) = args.shard.shard {
        let played = runs.play_shard(shard, privilege, &progress)?;
        print_shard(shard, inputs, runs.cases()?, &played)?;
        return Ok(ExitCode::SUCCESS);
    }
    let played = runs.play(privilege, &progress)?;
    let outcome = runs.outcome(&seeds, played, &terms)?;
    let usual = (!args.json).then_some(Path::new(REPORT));
    let report = args.report.as_deref().or(usual);
    write_report(&outcome, report)?;
    if args.json {
        json::print(&outcome)?;
    } else {
        print(&outcome, report);
    }
    Ok(if outcome.tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(NOT_ALL_MADE) })
}

/// Makes one outcome of what the shards of `of` have.
pub(crate) fn merge(
    of: &ReproduceArgs,
    merging: &Merging<'_>,
    report: Option<&Path>,
) -> Result<()> {
    let merged: Merged<PlayedRuns> = merging.results()?;
    let partial = merged.partial.clone();
    let seeds = Seed::chosen(of.seed.as_deref())?;
    let npb = npb(of, &merged.sweep.inputs)?;
    let terms = Terms { quick: of.quick, npb: npb.as_ref() };
    let outcome = Runs::of(&seeds, &terms)?.merge(&seeds, merged, &terms)?;
    write_report(&outcome, report)?;
    merging.finish(&outcome, partial.as_ref(), || print(&outcome, report))
}

/// The text of the file of the NAS Parallel Benchmarks, if there is one.
fn inputs(args: &ReproduceArgs) -> Result<BTreeMap<String, String>> {
    let read = |path: &PathBuf| Ok((NPB.to_owned(), Npb::text(path)?));
    args.npb.iter().map(read).collect()
}

fn npb(args: &ReproduceArgs, inputs: &BTreeMap<String, String>) -> Result<Option<Npb>> {
    let Some(path) = &args.npb else { return Ok(None) };
    let text =
        inputs.get(NPB).with_context(|| format!("the text of {} is missing", path.display()))?;
    Npb::parse(path, text).map(Some)
}

fn write_report(outcome: &Outcome, path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let page = page::render(outcome)?;
    files::write(path, page.as_bytes()).with_context(|| format!("write {}", path.display()))
}

fn print(outcome: &Outcome, report: Option<&Path>) {
    let width = Width::of_output();
    for seed in &outcome.seeds {
        print_seed(seed, width);
    }
    outln!("{}", width.wrap(&closing(outcome)));
    if let Some(path) = report {
        outln!("\nReport: {}", path.display());
    }
}

fn list(seeds: &[Seed]) -> Table {
    let mut table = Table::new([("name", 0), ("what", 0), ("numbers", 1)]);
    for seed in seeds {
        for part in &seed.parts {
            let name = format!("{}/{}", seed.name, part.name);
            table.add_row([name, part.title.clone(), part.numbers.len().to_string()]);
        }
    }
    table
}

fn print_seed(seed: &SeedOutcome, width: Width) {
    outln!("{}", width.wrap(&seed.title));
    for part in &seed.parts {
        outln!("\n{}\n", width.wrap(&part.title));
        outln!("{}", table(part).fit(width));
        let is_open = |verdict| matches!(verdict, Agreement::Misses | Agreement::NotMade);
        let mut said = "";
        for number in part.numbers.iter().filter(|it| is_open(it.verdict)) {
            // Several numbers may lack the same run.
            if !number.note.is_empty() && number.note != said {
                outln!("{}", width.wrap(&format!("{}: {}", number.what, number.note)));
            }
            said = &number.note;
        }
    }
    outln!("");
}

fn table(part: &PartOutcome) -> Table {
    let columns = [
        ("number", 0),
        ("document", 0),
        ("ours", 0),
        ("if nothing", 2),
        ("unit", 2),
        ("difference", 1),
        ("tolerance", 3),
        ("", 0),
    ];
    let mut table = Table::new(columns).with_words_last();
    for number in &part.numbers {
        let [ours, nothing, difference] = number.in_words();
        let verdict = number.verdict.in_words().to_owned();
        let (what, unit) = (number.what.clone(), number.unit.clone());
        let (stated, tolerance) = (number.stated.clone(), number.tolerance.clone());
        table.add_row([what, stated, ours, nothing, unit, difference, tolerance, verdict]);
    }
    table
}

fn closing(outcome: &Outcome) -> String {
    let quick = if outcome.quick { " Runs were short (--quick)." } else { "" };
    format!("{} Real time: {:.0} s.{quick}", outcome.in_words(), outcome.wall_s)
}
