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
//! [verdict](claim::Agreement). A constant that was set from a number makes that number agree,
//! so the verdict says so and does not count it; nor does it count what would agree if no setting
//! changed anything. What cannot be made is there as well, with the
//! reason.
//!
//! # Example
//!
//! Not run as a test: guests need a kernel, which takes minutes to build.
//!
//! ```no_run
//! use report::progress::Progress;
//! use reproduce::{Runs, Terms, seed::Seed};
//!
//! let seeds = Seed::chosen(Some("bge"))?;
//! let terms = Terms { quick: false, npb: None };
//! let runs = Runs::of(&seeds, &terms)?;
//! let (privilege, progress) = (runs.privilege()?, Progress::new(true));
//! let played = runs.play(privilege, &progress)?;
//! let outcome = runs.outcome(&seeds, played, &terms)?;
//! println!("{}", outcome.in_words());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! - [`seed`]: a document as data; [`claim`]: what it says of a number; [`formula`], [`figure`]:
//!   how ours is made; [`npb`]: what has to be measured live;
//! - [`fit`]: a machine's constants from the numbers that set them;
//! - [`outcome`]: numbers beside each other, and their sum; [`page`]: the report.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod claim;
mod curves;
pub mod figure;
pub mod fit;
pub mod formula;
pub mod npb;
pub mod outcome;
pub mod page;
pub mod seed;

use anyhow::{Context, Result, ensure};
use bench::compare::{self, Comparison};
use bench::scenario::Run;
use bench::shard::Shard;
use bench::turns::{Played, Turns};
use report::progress::Progress;
use sys::privilege::Privilege;
use worlds::Terminal;
use worlds::sweep::{Merged, PlayedRuns};

use formula::Results;
use npb::{Modelled, Npb};
use outcome::{NumberOutcome, Outcome, PartOutcome, RunOutcome, SeedOutcome};
use seed::{DocumentPart, Ours, Seed};

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

/// What a run has measured, and the seconds of real time that it took; or why it has not.
type RunResult = Result<(Comparison, f64), String>;

/// Why a run has no results if not all shards have been merged.
const MISSING: &str = "a shard of its run is missing";

impl Runs {
    /// Those that `seeds` need.
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
    pub fn cases(&self) -> Result<u64> {
        Ok(self.turns()?.iter().map(Turns::cases).sum())
    }

    /// Makes this process able to create the hosts that they need; `None` if they need none.
    ///
    /// # Errors
    /// If this user may not.
    pub fn privilege(&self) -> Result<Option<Privilege>> {
        let worlds = self.runs.iter().filter_map(|run| run.world);
        Ok(worlds::privilege(worlds)?)
    }

    fn turns(&self) -> Result<Vec<Turns<'_>>> {
        Turns::of_runs(&self.runs, None)
    }

    /// Plays what `shard` has of them.
    pub fn play_shard(
        &self,
        shard: Shard,
        privilege: Option<Privilege>,
        progress: &Progress,
    ) -> Result<PlayedRuns> {
        self.each(shard, privilege, progress)?.collect::<Result<_>>().map(PlayedRuns)
    }

    /// Plays all of them. One that fails, as it lacks a program, does not end the others.
    pub fn play(
        &self,
        privilege: Option<Privilege>,
        progress: &Progress,
    ) -> Result<Vec<Result<Played, String>>> {
        let played: Vec<Result<Played>> = self.each(Shard::WHOLE, privilege, progress)?.collect();
        if played.iter().all(Result::is_err) {
            return played.into_iter().map(|run| run.map(Ok)).collect();
        }
        Ok(played.into_iter().map(|run| run.map_err(|why| format!("{why:#}"))).collect())
    }

    /// Plays one after the other.
    fn each<'a>(
        &'a self,
        shard: Shard,
        privilege: Option<Privilege>,
        progress: &'a Progress,
    ) -> Result<impl Iterator<Item = Result<Played>> + 'a> {
        let runs = self.turns()?.into_iter().zip(&self.runs).zip(&self.titles);
        Ok(runs.map(move |((turns, run), (title, _))| {
            let open = || worlds::open(turns.world(), &run.nic, privilege);
            turns
                .play(shard, open, &Terminal(progress))
                .with_context(|| format!("reproduce {title}"))
        }))
    }

    /// Numbers beside each other, made of what all shards have played of the runs of `seeds`.
    pub fn merge(
        &self,
        seeds: &[Seed],
        merged: Merged<PlayedRuns>,
        terms: &Terms<'_>,
    ) -> Result<Outcome> {
        let played = PlayedRuns::merge(&self.turns()?, merged)?;
        self.outcome(seeds, played.into_iter().map(Ok).collect(), terms)
    }

    /// Numbers beside each other, made of what was played of each run of `seeds`, or of why it was
    /// not.
    pub fn outcome(
        &self,
        seeds: &[Seed],
        played: Vec<Result<Played, String>>,
        terms: &Terms<'_>,
    ) -> Result<Outcome> {
        let turns = self.turns()?;
        ensure!(played.len() == turns.len(), "{} of {} runs", played.len(), turns.len());
        let mut results = Vec::new();
        for (turns, played) in turns.iter().zip(played) {
            results.push(played.and_then(|played| {
                if !turns.are_complete(&played) {
                    return Err(MISSING.into());
                }
                let wall_s = played.wall_s;
                let comparison = compare::of(turns, played).map_err(|why| format!("{why:#}"))?;
                Ok((comparison, wall_s))
            }));
        }
        let commands = self.titles.iter().map(|(_, command)| command.clone());
        let mut results = commands.zip(results);
        let mut outcomes = Vec::new();
        for seed in seeds {
            let parts = seed.parts.iter().map(|part| of_part(part, &mut results, terms));
            outcomes.push(SeedOutcome::new(seed, parts.collect::<Result<_>>()?));
        }
        Ok(Outcome::new(outcomes, terms.quick))
    }
}

/// The numbers of a part, whose runs are the next ones of `each`.
fn of_part(
    part: &DocumentPart,
    each: &mut impl Iterator<Item = (String, RunResult)>,
    terms: &Terms<'_>,
) -> Result<PartOutcome> {
    let mut results = Results::new();
    let mut runs = Vec::new();
    for (name, (command, result)) in part.runs.keys().zip(each) {
        if let Ok((comparison, wall_s)) = &result {
            let environment = comparison.results.first().map(|result| result.environment.clone());
            let (name, wall_s) = (name.clone(), *wall_s);
            runs.push(RunOutcome { name, command, wall_s, environment });
        }
        results.insert(name.clone(), result.map(|(comparison, _)| comparison));
    }
    let ratios = part.numbers.iter().filter_map(|number| match &number.ours {
        // Half a minute of work.
        Ours::Npb(ratio) if terms.npb.is_none() && !terms.quick => Some(ratio),
        _ => None,
    });
    let modelled = Modelled::of(ratios)?;
    let number = |it| NumberOutcome::new(it, &results, terms.npb, &modelled);
    let numbers = part.numbers.iter().map(number);
    let numbers = numbers.collect();
    let curve = part.curve.as_ref().and_then(|curve| curves::draw(curve, &results));
    let DocumentPart { name, title, about, .. } = part.clone();
    Ok(PartOutcome { name, title, about, runs, numbers, curve })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_fails_leaves_its_numbers_unmade_and_the_others_alone() {
        let seeds = Seed::chosen(Some("bge")).unwrap();
        let terms = Terms { quick: true, npb: None };
        let runs = Runs::of(&seeds, &terms).unwrap();
        let why = "memcached could not be started; apt-get install memcached";
        let outcome = runs.outcome(&seeds, vec![Err(why.into())], &terms).unwrap();
        let part = &outcome.seeds[0].parts[0];
        assert!(part.runs.is_empty() && part.numbers.len() == 6);
        for number in &part.numbers {
            assert_eq!(number.verdict, claim::Agreement::NotMade, "{number:?}");
            assert!(number.note.contains(why), "{number:?}");
        }
        assert_eq!((outcome.tally.not_made, outcome.tally.failed), (6, 6));
        let words = outcome.in_words();
        assert!(words.contains("6 numbers were not made, for the reasons above"), "{words}");
    }
}
