//! The measurements of the documents that Earmark implements, made again, beside their numbers.
//!
//! # Theory of operation
//!
//! Five documents made people ask for Earmark: two articles on NICs that held packets back (e1000,
//! bge), one on a clock that was wrong by half of a hold (Odroid), and the paper on Open-MX. A
//! [`Seed`] is one of them as data: the machine as [constants](seed::Constant), each with its
//! origin; the experiments, in virtual time, with the keys of a scenario; and each number that the
//! document states, with the [formula](formula::Formula) of ours and the tolerance, both fixed
//! before anything runs. [`reproduce`] runs the experiments and returns each number beside ours,
//! with a [verdict](claim::Verdict). A constant that was set from a number makes that number agree,
//! so the verdict says so and does not count it. What cannot be made is there as well, with the
//! reason.
//!
//! # Example
//!
//! Not run as a test: guests need a kernel, which takes minutes to build.
//!
//! ```no_run
//! use report::progress::Progress;
//! use reproduce::{Terms, seed::Seed};
//!
//! let seeds = Seed::chosen(Some("bge"))?;
//! let (privilege, progress) = (sys::privilege::become_capable()?, Progress::new(true));
//! let terms = Terms { quick: false, npb: None, privilege, progress: &progress };
//! let outcome = reproduce::reproduce(&seeds, &terms)?;
//! println!("{}", outcome.in_words());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! - [`seed`]: a document as data; [`claim`]: what it says of a number; [`formula`], [`figure`]:
//!   how ours is made; [`npb`]: what has to be measured live;
//! - [`outcome`]: numbers beside each other, and their sum; [`page`]: the report.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod claim;
mod curves;
pub mod figure;
pub mod formula;
pub mod npb;
pub mod outcome;
pub mod page;
pub mod seed;

use std::time::Instant;

use anyhow::{Context, Result};
use bench::compare::{self, Comparison};
use bench::scenario::Run;
use report::progress::Progress;
use sys::privilege::Privilege;

use formula::Results;
use npb::Npb;
use outcome::{NumberOutcome, Outcome, PartOutcome, RunOutcome, SeedOutcome};
use seed::{Part, Seed};

/// How numbers are made.
pub struct Terms<'a> {
    /// Runs last a quarter of their time.
    pub quick: bool,
    /// What was measured live, if there is a file of it.
    pub npb: Option<&'a Npb>,
    /// The right to make hosts.
    pub privilege: Privilege,
    /// Where to show progress.
    pub progress: &'a Progress,
}

/// Runs everything that `seeds` need, and compares.
///
/// # Errors
/// If there is no kernel for guests, or a run fails.
pub fn reproduce(seeds: &[Seed], terms: &Terms<'_>) -> Result<Outcome> {
    let started = Instant::now();
    let mut outcomes = Vec::new();
    for seed in seeds {
        let parts = seed.parts.iter().map(|part| of_part(seed, part, terms));
        outcomes.push(SeedOutcome::new(seed, parts.collect::<Result<_>>()?));
    }
    Ok(Outcome::new(outcomes, terms.quick, started.elapsed()))
}

fn of_part(seed: &Seed, part: &Part, terms: &Terms<'_>) -> Result<PartOutcome> {
    let place = || format!("reproduce {}/{}", seed.name, part.name);
    let mut results = Results::new();
    let mut runs = Vec::new();
    for name in part.runs.keys() {
        let (run, command) = seed.run(part, name, terms.quick)?;
        let started = Instant::now();
        let comparison = play(&run, terms);
        let comparison = comparison.with_context(|| format!("{}, run {name}", place()))?;
        runs.push(RunOutcome::new(name, command, &comparison, started.elapsed()));
        results.insert(name.clone(), comparison);
    }
    let number = |number| NumberOutcome::new(number, &results, terms.npb);
    let numbers = part.numbers.iter().map(number).collect::<Result<_>>().with_context(place)?;
    let curve = part.curve.as_ref().and_then(|curve| curves::draw(curve, &results));
    Ok(PartOutcome::new(part, runs, numbers, curve))
}

fn play(run: &Run, terms: &Terms<'_>) -> Result<Comparison> {
    let world = compare::open(run.world.unwrap_or_default(), &run.nic, terms.privilege)?;
    compare::run(run.experiment, &run.nic, &run.options, world, terms.progress)
}
