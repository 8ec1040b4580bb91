//! The measurements of the documents that Earmark implements, made again, beside their numbers.
//!
//! # Theory of operation
//!
//! Five documents made people ask for Earmark: two articles on NICs that held packets back (e1000,
//! bge), one on a clock that was wrong by half of a hold (Odroid), and the paper on Open-MX. A
//! [`Seed`] is one of them as data: the machine as [constants](seed::Constant), each with its
//! origin; the experiments, in virtual time, with the keys of a scenario; and each number that the
//! document states, with the [formula](formula::Formula) of ours and the tolerance, both fixed
//! before anything runs. [`Runs`] are the experiments, and return each number beside ours, with a
//! [verdict](claim::Verdict). A constant that was set from a number makes that number agree,
//! so the verdict says so and does not count it. What cannot be made is there as well, with the
//! reason.
//!
//! # Example
//!
//! Not run as a test: guests need a kernel, which takes minutes to build.
//!
//! ```no_run
//! use bench::sweep::Shard;
//! use report::progress::Progress;
//! use reproduce::{Runs, Terms, seed::Seed};
//!
//! let seeds = Seed::chosen(Some("bge"))?;
//! let (privilege, progress) = (sys::privilege::become_capable()?, Progress::new(true));
//! let terms = Terms { quick: false, npb: None };
//! let runs = Runs::of(&seeds, &terms)?;
//! let played = runs.play(Shard::WHOLE, privilege, &progress)?;
//! let outcome = runs.outcome(&seeds, played.0, &terms)?;
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

use anyhow::{Context, Result, ensure};
use bench::compare::{self, Comparison};
use bench::scenario::Run;
use bench::sweep::{Merged, Shard};
use bench::turns::{Played, PlayedRuns, Turns};
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
}

/// The runs of all parts, in order.
pub struct Runs {
    runs: Vec<Run>,
    /// What each is called, and how to type it.
    titles: Vec<(String, String)>,
}

/// What a run has measured, and the seconds of real time that it took; nothing if it was not
/// played, or not the whole of it.
type RunResult = Option<(Comparison, f64)>;

impl Runs {
    /// Those that `seeds` need.
    ///
    /// # Errors
    /// If a seed has no such run, or an option is not what the flag takes.
    pub fn of(seeds: &[Seed], terms: &Terms<'_>) -> Result<Self> {
        let (mut runs, mut titles) = (Vec::new(), Vec::new());
        for seed in seeds {
            for part in &seed.parts {
                for name in part.runs.keys() {
                    let (run, command) = seed.run(part, name, terms.quick)?;
                    titles.push((format!("{}/{}, run {name}", seed.name, part.name), command));
                    runs.push(run);
                }
            }
        }
        Ok(Self { runs, titles })
    }

    /// How many cases they have together.
    ///
    /// # Errors
    /// If options do not go together.
    pub fn cases(&self) -> Result<u64> {
        Ok(self.turns()?.iter().map(Turns::cases).sum())
    }

    fn turns(&self) -> Result<Vec<Turns<'_>>> {
        Turns::of_runs(&self.runs, None)
    }

    /// Plays what `shard` has of them.
    ///
    /// # Errors
    /// If there is no kernel for guests, or a run fails.
    pub fn play(
        &self,
        shard: Shard,
        privilege: Privilege,
        progress: &Progress,
    ) -> Result<PlayedRuns> {
        let mut played = Vec::new();
        for ((turns, run), (title, _)) in self.turns()?.iter().zip(&self.runs).zip(&self.titles) {
            let open = || compare::open(turns.world(), &run.nic, privilege);
            let of_run = turns.play(shard, open, progress);
            played.push(of_run.with_context(|| format!("reproduce {title}"))?);
        }
        Ok(PlayedRuns(played))
    }

    /// Numbers beside each other, made of what all shards have played of the runs of `seeds`.
    ///
    /// # Errors
    /// If shards have not what they should have, or a number cannot be made.
    pub fn merge(
        &self,
        seeds: &[Seed],
        merged: Merged<PlayedRuns>,
        terms: &Terms<'_>,
    ) -> Result<Outcome> {
        let played = PlayedRuns::merge(&self.turns()?, merged)?;
        self.outcome(seeds, played, terms)
    }

    /// Numbers beside each other, made of what was played of each run of `seeds`.
    ///
    /// # Errors
    /// If nothing was measured in a run, or a number cannot be made.
    pub fn outcome(
        &self,
        seeds: &[Seed],
        played: Vec<Played>,
        terms: &Terms<'_>,
    ) -> Result<Outcome> {
        let turns = self.turns()?;
        ensure!(played.len() == turns.len(), "{} of {} runs", played.len(), turns.len());
        let mut results = Vec::new();
        for ((turns, played), (title, _)) in turns.iter().zip(played).zip(&self.titles) {
            let wall_s = played.wall_s;
            let whole = turns.are_complete(&played).then(|| compare::of(turns, played));
            let whole = whole.transpose().with_context(|| format!("reproduce {title}"))?;
            results.push(whole.map(|comparison| (comparison, wall_s)));
        }
        let commands = self.titles.iter().map(|(_, command)| command.clone());
        let mut results = commands.zip(results);
        let mut outcomes = Vec::new();
        for seed in seeds {
            let parts = seed.parts.iter().map(|part| of_part(seed, part, &mut results, terms));
            outcomes.push(SeedOutcome::new(seed, parts.collect::<Result<_>>()?));
        }
        Ok(Outcome::new(outcomes, terms.quick))
    }
}

/// The numbers of a part, whose runs are the next ones of `each`.
fn of_part(
    seed: &Seed,
    part: &Part,
    each: &mut impl Iterator<Item = (String, RunResult)>,
    terms: &Terms<'_>,
) -> Result<PartOutcome> {
    let mut results = Results::new();
    let mut runs = Vec::new();
    for (name, (command, result)) in part.runs.keys().zip(each) {
        let Some((comparison, wall_s)) = result else { continue };
        runs.push(RunOutcome::new(name, command, &comparison, wall_s));
        results.insert(name.clone(), comparison);
    }
    let place = || format!("reproduce {}/{}", seed.name, part.name);
    let number = |number| NumberOutcome::new(number, &results, terms.npb);
    let numbers = part.numbers.iter().map(number).collect::<Result<_>>().with_context(place)?;
    let curve = part.curve.as_ref().and_then(|curve| curves::draw(curve, &results));
    Ok(PartOutcome::new(part, runs, numbers, curve))
}
