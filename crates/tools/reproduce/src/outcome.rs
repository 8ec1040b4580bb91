//! Numbers of the documents beside ours, and their sum.

use std::collections::BTreeMap;

use bench::compare::Comparison;
use bench::environment::Environment;
use report::panels::Picture;
use serde::Serialize;

use crate::claim::{Claim, Verdict, number};
use crate::formula::Results;
use crate::npb::Npb;
use crate::seed::{Constant, Number, Origin, Ours, Part, Seed};

/// Everything; `--json` prints it.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// [`bench::measurement::SCHEMA`].
    pub schema_version: u32,
    /// Runs lasted a quarter of their time.
    pub quick: bool,
    /// How long the runs took, in seconds of real time; of shards all together.
    pub wall_s: f64,
    /// How many numbers came out how.
    pub tally: Tally,
    /// Where it ran.
    pub environment: Option<Environment>,
    /// Each document.
    pub seeds: Vec<SeedOutcome>,
}

/// How many numbers came out how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Values that were predicted.
    pub values: usize,
    /// Those within 5 %.
    pub within_5_percent: usize,
    /// Those within 15 %, the former among them.
    pub within_15_percent: usize,
    /// Values and orders that agree, within their own tolerance.
    pub agree: usize,
    /// Those that do not.
    pub miss: usize,
    /// Orders and inequalities, among the two above.
    pub orders: usize,
    /// Numbers that a constant was set from.
    pub set: usize,
    /// Numbers that cannot be made here, or were not.
    pub not_made: usize,
    /// Those among them that could have been: a run failed, or a shard of it is missing.
    pub failed: usize,
    /// Constants by origin.
    pub constants: BTreeMap<String, usize>,
}

/// One document.
#[derive(Debug, Serialize)]
pub struct SeedOutcome {
    /// Its name.
    pub name: String,
    /// One line on what was found.
    pub title: String,
    /// Author, title, date.
    pub source: String,
    /// The machine.
    pub constants: Vec<Constant>,
    /// Its tables and figures.
    pub parts: Vec<PartOutcome>,
}

/// One table or figure.
#[derive(Debug, Serialize)]
pub struct PartOutcome {
    /// Its name.
    pub name: String,
    /// The heading.
    pub title: String,
    /// What was measured, and how it is here.
    pub about: String,
    /// What was run.
    pub runs: Vec<RunOutcome>,
    /// The numbers.
    pub numbers: Vec<NumberOutcome>,
    /// A picture over clients or time.
    #[serde(skip)]
    pub curve: Option<Picture>,
}

/// One run.
#[derive(Debug, Serialize)]
pub struct RunOutcome {
    /// Its name in the file.
    pub name: String,
    /// How to type it.
    pub command: String,
    /// Seconds of real time.
    pub wall_s: f64,
    /// Where it ran.
    #[serde(skip)]
    environment: Option<Environment>,
}

/// One number of a document, and ours.
#[derive(Debug, Serialize)]
pub struct NumberOutcome {
    /// What it is of.
    pub what: String,
    /// The unit of both.
    pub unit: String,
    /// What the document says.
    pub stated: String,
    /// The tolerance, fixed before the run.
    pub tolerance: String,
    /// Ours.
    pub ours: Option<f64>,
    /// Ours less the document's, in percent of that, where there is one.
    pub difference_percent: Option<f64>,
    /// Whether they agree.
    pub verdict: Verdict,
    /// Whether it was not made because a run failed.
    #[serde(skip)]
    failed: bool,
    /// The reason of a difference, or what it rests on.
    pub note: String,
    /// What the document says, as data.
    #[serde(skip)]
    pub claim: Claim,
}

impl RunOutcome {
    pub(crate) fn new(name: &str, command: String, of: &Comparison, wall_s: f64) -> Self {
        let environment = of.results.first().map(|result| result.environment.clone());
        Self { name: name.into(), command, wall_s, environment }
    }
}

impl NumberOutcome {
    /// Compares.
    pub(crate) fn new(number: &Number, results: &Results, npb: Option<&Npb>) -> Self {
        let note = number.note.clone();
        let mut failed = false;
        let (ours, verdict, note) = match &number.ours {
            Ours::Predicted(formula) | Ours::Set(formula) => match formula.value(results) {
                Ok(ours) if matches!(number.ours, Ours::Set(_)) => (Some(ours), Verdict::Set, note),
                Ok(ours) => (Some(ours), Verdict::of(&number.claim, ours), note),
                Err(why) => {
                    failed = true;
                    (None, Verdict::NotMade, format!("Not made: {why:#}."))
                }
            },
            Ours::Npb(ratio) => match npb.map(|npb| npb.value(ratio)) {
                Some(Some((ours, class))) => {
                    let note = format!("Live, class {class}. {note}");
                    (Some(ours), Verdict::of(&number.claim, ours), note.trim_end().into())
                }
                Some(None) => (None, Verdict::NotMade, "The file does not have it.".into()),
                None => {
                    let why = "For the live world: `cargo xtask npb` measures it, and `--npb FILE` \
                               reads its file.";
                    (None, Verdict::NotMade, why.into())
                }
            },
            Ours::Cannot(why) => (None, Verdict::NotMade, why.clone()),
        };
        Self {
            what: number.what.clone(),
            unit: number.unit.clone(),
            stated: number.claim.stated(),
            tolerance: number.claim.tolerance(),
            ours,
            difference_percent: ours.and_then(|ours| number.claim.difference_percent(ours)),
            verdict,
            failed,
            note,
            claim: number.claim,
        }
    }

    /// Ours and the difference, in words.
    #[must_use]
    pub fn in_words(&self) -> [String; 2] {
        let ours = self.ours.map_or_else(|| "-".into(), number);
        let difference = self.difference_percent.map(|percent| format!("{percent:+.1} %"));
        [ours, difference.unwrap_or_else(|| "-".into())]
    }
}

impl Verdict {
    fn of(claim: &Claim, ours: f64) -> Self {
        if claim.is_met_by(ours) { Self::Agrees } else { Self::Misses }
    }

    /// In words.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Misses => "misses",
            Self::Set => "set",
            Self::NotMade => "not made",
        }
    }
}

impl PartOutcome {
    pub(crate) fn new(
        part: &Part,
        runs: Vec<RunOutcome>,
        numbers: Vec<NumberOutcome>,
        curve: Option<Picture>,
    ) -> Self {
        let Part { name, title, about, .. } = part.clone();
        Self { name, title, about, runs, numbers, curve }
    }
}

impl SeedOutcome {
    pub(crate) fn new(seed: &Seed, parts: Vec<PartOutcome>) -> Self {
        let Seed { name, title, source, constants, .. } = seed.clone();
        Self { name, title, source, constants, parts }
    }
}

impl Outcome {
    pub(crate) fn new(seeds: Vec<SeedOutcome>, quick: bool) -> Self {
        let runs = seeds.iter().flat_map(|seed| &seed.parts).flat_map(|part| &part.runs);
        let environment = runs.clone().find_map(|run| run.environment.clone());
        let wall_s = runs.map(|run| run.wall_s).sum();
        Self {
            schema_version: bench::measurement::SCHEMA,
            quick,
            wall_s,
            tally: Tally::of(&seeds),
            environment,
            seeds,
        }
    }

    /// The sum, in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Tally {
            values,
            within_5_percent,
            within_15_percent,
            agree,
            miss,
            orders,
            set,
            not_made,
            ..
        } = self.tally;
        let failed = match self.tally.failed {
            0 => String::new(),
            count => format!(" {count} numbers were not made, for the reasons above."),
        };
        let constants = self.tally.constants.iter();
        let constants: Vec<_> =
            constants.map(|(origin, count)| format!("{count} {origin}")).collect();
        format!(
            "Of {} predictions {agree} agree within their tolerances and {miss} do not. {values} of \
             them are values: {within_5_percent} are within 5 %, {within_15_percent} within 15 %, {} \
             further away; {orders} are orders or inequalities. Besides, {set} numbers were used to \
             set constants, and {} cannot be made here.{failed} Constants: {}.",
            agree + miss,
            values - within_15_percent,
            not_made - self.tally.failed,
            constants.join(", "),
        )
    }
}

impl Tally {
    fn of(seeds: &[SeedOutcome]) -> Self {
        let mut tally = Self::default();
        for seed in seeds {
            for constant in &seed.constants {
                let origin = match constant.origin {
                    Origin::Stated => "stated",
                    Origin::Measured => "measured",
                    Origin::Set => "set",
                    Origin::Assumed => "assumed",
                };
                *tally.constants.entry(origin.into()).or_default() += 1;
            }
            seed.parts.iter().flat_map(|part| &part.numbers).for_each(|it| tally.count(it));
        }
        tally
    }

    fn count(&mut self, number: &NumberOutcome) {
        match number.verdict {
            Verdict::Agrees => self.agree += 1,
            Verdict::Misses => self.miss += 1,
            Verdict::Set => self.set += 1,
            Verdict::NotMade => {
                self.not_made += 1;
                self.failed += usize::from(number.failed);
            }
        }
        if !matches!(number.verdict, Verdict::Agrees | Verdict::Misses) {
            return;
        }
        if number.claim.values().is_none() {
            self.orders += 1;
            return;
        }
        self.values += 1;
        // Of a number without a percentage, such as 0, its own tolerance decides.
        let is_near = number.verdict == Verdict::Agrees;
        let within =
            |percent: f64| number.difference_percent.map_or(is_near, |it| it.abs() <= percent);
        self.within_5_percent += usize::from(within(5.0));
        self.within_15_percent += usize::from(within(15.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Tolerance;

    fn outcome(value: f64, ours: f64) -> NumberOutcome {
        let claim = Claim::Value { value, tolerance: Tolerance::Within(1.0) };
        let verdict = Verdict::of(&claim, ours);
        NumberOutcome {
            what: String::new(),
            unit: String::new(),
            stated: claim.stated(),
            tolerance: claim.tolerance(),
            ours: Some(ours),
            difference_percent: claim.difference_percent(ours),
            verdict,
            failed: false,
            note: String::new(),
            claim,
        }
    }

    #[test]
    fn a_number_counts_once_and_a_set_one_does_not() {
        let mut tally = Tally::default();
        tally.count(&outcome(100.0, 100.5));
        tally.count(&outcome(100.0, 110.0));
        tally.count(&outcome(100.0, 130.0));
        tally.count(&outcome(0.0, 0.5));
        tally.count(&NumberOutcome { verdict: Verdict::Set, ..outcome(1.0, 1.0) });
        let order = NumberOutcome { claim: Claim::Above(0.0), ..outcome(1.0, 1.0) };
        tally.count(&order);
        let expected = Tally {
            values: 4,
            within_5_percent: 2,
            within_15_percent: 3,
            agree: 3,
            miss: 2,
            orders: 1,
            set: 1,
            ..Tally::default()
        };
        assert_eq!(tally, expected);
    }
}
