//! `earmark reproduce`: what the documents report, made again, beside their numbers.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use sys::privilege::become_capable;

use bench::suggestions::SuggestedValues;
use report::outln;
use report::progress::Progress;
use report::terminal::{Table, Width};
use reproduce::Terms;
use reproduce::claim::Verdict;
use reproduce::npb::Npb;
use reproduce::outcome::{Outcome, PartOutcome, SeedOutcome};
use reproduce::page;
use reproduce::seed::Seed;

/// What `earmark reproduce` takes.
#[derive(Args, Debug)]
pub struct ReproduceArgs {
    /// A document (e1000, bge, odroid, openmx), or DOCUMENT/PART such as openmx/table1; without it
    /// all
    #[arg(value_name = "SEED|SEED/TABLE", value_parser = offered(), hide_possible_values = true)]
    seed: Option<String>,
    /// A quarter of the time for each run
    #[arg(long)]
    quick: bool,
    /// What `cargo xtask npb` has measured, for the tables of the NAS Parallel Benchmarks
    #[arg(long, value_name = "FILE")]
    npb: Option<PathBuf>,
    /// List what there is, and run nothing
    #[arg(long, conflicts_with_all = ["quick", "json"])]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Where the HTML report goes [default: earmark-reproduction.html; with --json, nowhere]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Where the report goes if nobody says.
const REPORT: &str = "earmark-reproduction.html";

fn offered() -> SuggestedValues<String> {
    SuggestedValues::new(Seed::documents().collect())
}

/// Runs what was asked for, prints each number beside ours, and writes the report.
///
/// # Errors
/// If there is no such document, guests cannot be booted, or the report cannot be written.
pub fn run(args: &ReproduceArgs) -> Result<()> {
    let seeds = Seed::chosen(args.seed.as_deref())?;
    let width = Width::of_output();
    if args.list {
        outln!("{}", list(&seeds).fit(width));
        return Ok(());
    }
    let privilege = become_capable()?;
    let progress = Progress::new(args.json);
    let npb = args.npb.as_deref().map(Npb::read).transpose()?;
    let terms = Terms { quick: args.quick, npb: npb.as_ref(), privilege, progress: &progress };
    let outcome = reproduce::reproduce(&seeds, &terms)?;
    let usual = (!args.json).then(|| PathBuf::from(REPORT));
    let report = args.report.clone().or(usual);
    if let Some(path) = &report {
        let page = page::render(&outcome)?;
        fs::write(path, page).with_context(|| format!("write {}", path.display()))?;
    }
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&outcome)?);
        return Ok(());
    }
    for seed in &outcome.seeds {
        print_seed(seed, width);
    }
    outln!("{}", width.wrap(&closing(&outcome)));
    if let Some(path) = &report {
        outln!("\nReport: {}", path.display());
    }
    Ok(())
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
        for number in part.numbers.iter().filter(|it| it.verdict == Verdict::Misses) {
            if !number.note.is_empty() {
                outln!("{}", width.wrap(&format!("{}: {}", number.what, number.note)));
            }
        }
    }
    outln!("");
}

fn table(part: &PartOutcome) -> Table {
    let columns = [
        ("number", 0),
        ("document", 0),
        ("ours", 0),
        ("unit", 2),
        ("difference", 1),
        ("tolerance", 3),
        ("", 0),
    ];
    let mut table = Table::new(columns).with_words_last();
    for number in &part.numbers {
        let [ours, difference] = number.in_words();
        let verdict = number.verdict.in_words().to_owned();
        let (what, unit) = (number.what.clone(), number.unit.clone());
        let (stated, tolerance) = (number.stated.clone(), number.tolerance.clone());
        table.add_row([what, stated, ours, unit, difference, tolerance, verdict]);
    }
    table
}

fn closing(outcome: &Outcome) -> String {
    let quick = if outcome.quick { " Runs were short (--quick)." } else { "" };
    format!("{} Real time: {:.0} s.{quick}", outcome.in_words(), outcome.wall_s)
}
