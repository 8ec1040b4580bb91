//! Numbers of the documents beside ours, and their sum.

use std::collections::{BTreeMap, BTreeSet};

use bench::environment::Environment;
use report::numbers::signed;
use report::panels::Picture;
use serde::Serialize;

use anyhow::Result;

use crate::claim::{Agreement, Claim, Null, number};
use crate::formula::{Formula, Results};
use crate::npb::{Modelled, Npb, NpbRatio};
use crate::seed::{Constant, Number, Ours, PartConstant, Seed};

/// Everything; `--json` prints it.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Runs lasted a quarter of their time.
    pub quick: bool,
    /// How long the runs took, in seconds of real time; of shards all together.
    pub wall_s: f64,
    /// How many numbers came out how.
    pub tally: Tally,
    /// Where it ran.
    pub environment: Option<Environment>,
    /// The documents, in order.
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
    /// Values and orders that agree, within their own tolerance, and would not if no setting
    /// changed anything.
    pub agree: usize,
    /// Those that would agree all the same.
    pub no_evidence: usize,
    /// Those that do not.
    pub miss: usize,
    /// Orders and inequalities, among the three above.
    pub orders: usize,
    /// Numbers that a constant was set from.
    pub set: usize,
    /// Numbers that cannot be made here, or were not.
    pub not_made: usize,
    /// Those among them that could have been: a run failed, or a shard of it is missing.
    pub failed: usize,
    /// Constants by origin, each once for a document.
    pub constants: BTreeMap<String, usize>,
}

/// What came of a document.
#[derive(Debug, Serialize)]
pub struct SeedOutcome {
    /// The name in its file.
    pub name: String,
    /// One line on what was found.
    pub title: String,
    /// Author, title, date.
    pub source: String,
    /// The machine: what all parts have in common, and what single ones have.
    pub constants: Vec<ConstantOutcome>,
    /// Its tables and figures.
    pub parts: Vec<PartOutcome>,
}

/// A constant, and where it holds.
#[derive(Debug, Serialize)]
pub struct ConstantOutcome {
    /// The part; all of them if there is none.
    pub part: Option<String>,
    /// The constant, as the seed has it.
    #[serde(flatten)]
    pub constant: Constant,
}

/// One table or figure.
#[derive(Debug, Serialize)]
pub struct PartOutcome {
    /// The name in its file.
    pub name: String,
    /// The heading of its chapter.
    pub title: String,
    /// What was measured, and how it is here.
    pub about: String,
    /// What was run.
    pub runs: Vec<RunOutcome>,
    /// The numbers, in order.
    pub numbers: Vec<NumberOutcome>,
    /// A picture over clients or time.
    #[serde(skip)]
    pub curve: Option<Picture>,
}

/// What came of a run.
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
    pub(crate) environment: Option<Environment>,
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
    /// What was measured here.
    pub ours: Option<f64>,
    /// What ours would be if no setting changed anything.
    pub nothing: Option<f64>,
    /// Ours less the document's, in percent of that, where there is one.
    pub difference_percent: Option<f64>,
    /// Whether they agree.
    pub verdict: Agreement,
    /// Whether it was not made because a run failed.
    #[serde(skip)]
    failed: bool,
    /// The reason of a difference, or what it rests on.
    pub note: String,
    /// What the document says, as data.
    #[serde(skip)]
    pub claim: Claim,
}

impl NumberOutcome {
    /// What `results`, or the file `npb`, or without it the model have for `number`.
    pub(crate) fn new(
        number: &Number,
        results: &Results,
        npb: Option<&Npb>,
        modelled: &Modelled<'_>,
    ) -> Self {
        let Number { what, unit, claim, note, .. } = number.clone();
        let mut outcome = Self {
            what,
            unit,
            stated: claim.stated(),
            tolerance: claim.tolerance(),
            ours: None,
            nothing: None,
            difference_percent: None,
            verdict: Agreement::NotMade,
            failed: false,
            note,
            claim,
        };
        match &number.ours {
            Ours::Predicted(formula) | Ours::Set(formula) => {
                match made(&number.ours, formula, results) {
                    Ok((ours, null)) => outcome.judge(ours, null),
                    Err(why) => {
                        (outcome.failed, outcome.note) = (true, format!("Not made: {why:#}."));
                    }
                }
            }
            Ours::Npb(ratio) => match npb.map(|npb| npb.value(ratio)) {
                Some(Some((ours, class))) => {
                    outcome.what += &format!(" (ours: class {class}, live)");
                    outcome.judge(ours, Some(NpbRatio::NULL));
                }
                Some(None) => outcome.note = "The file does not have it.".into(),
                None => match modelled.value(ratio) {
                    Some(ours) => outcome.judge(ours, Some(NpbRatio::NULL)),
                    None => outcome.note = "Left out: --quick plays no NAS programs.".into(),
                },
            },
            Ours::Cannot(why) => outcome.note.clone_from(why),
        }
        outcome
    }

    /// Holds `ours` against what the document says, and against the null model if there is one.
    fn judge(&mut self, ours: f64, null: Option<Null>) {
        self.ours = Some(ours);
        self.nothing = null.map(|null| null.value);
        self.difference_percent = self.claim.difference_percent(ours);
        self.verdict = null.map_or(Agreement::Set, |null| self.claim.verdict(ours, null));
    }

    /// Ours, what it would be if nothing changed, and the difference, in words.
    pub fn in_words(&self) -> [String; 3] {
        let [ours, nothing] =
            [self.ours, self.nothing].map(|it| it.map_or_else(|| "-".into(), number));
        let difference = self.difference_percent.map(|percent| format!("{} %", signed(percent, 1)));
        [ours, nothing, difference.unwrap_or_else(|| "-".into())]
    }
}

/// Ours, and what it would be if no setting changed anything; a number that set a constant is held
/// against nothing.
fn made(ours: &Ours, formula: &Formula, results: &Results) -> Result<(f64, Option<Null>)> {
    let null = matches!(ours, Ours::Predicted(_)).then(|| formula.null(results));
    Ok((formula.value(results)?, null.transpose()?))
}

impl Agreement {
    /// The same in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::NoEvidence => "agrees, as nothing would",
            Self::Misses => "misses",
            Self::Set => "set",
            Self::NotMade => "not made",
        }
    }
}

impl SeedOutcome {
    pub(crate) fn new(seed: &Seed, parts: Vec<PartOutcome>) -> Self {
        let Seed { name, title, source, constants, parts: all, .. } = seed.clone();
        let common = constants.into_iter().map(|constant| ConstantOutcome { part: None, constant });
        let of_parts = all.into_iter().flat_map(|part| {
            let of = move |it: PartConstant| {
                let part = Some(part.name.clone());
                ConstantOutcome { part, constant: it.constant }
            };
            part.constants.into_iter().map(of)
        });
        Self { name, title, source, constants: common.chain(of_parts).collect(), parts }
    }
}

impl Outcome {
    pub(crate) fn new(seeds: Vec<SeedOutcome>, quick: bool) -> Self {
        let runs = seeds.iter().flat_map(|seed| &seed.parts).flat_map(|part| &part.runs);
        let environment = runs.clone().find_map(|run| run.environment.clone());
        let wall_s = runs.map(|run| run.wall_s).sum();
        Self { quick, wall_s, tally: Tally::of(&seeds), environment, seeds }
    }

    /// The sum, in words.
    pub fn in_words(&self) -> String {
        let Tally { values, within_5_percent, within_15_percent, .. } = self.tally;
        let Tally { agree, no_evidence, miss, orders, set, not_made, .. } = self.tally;
        let failed = match self.tally.failed {
            0 => String::new(),
            count => format!(" {count} numbers were not made, for the reasons above."),
        };
        let constants = self.tally.constants.iter();
        let constants: Vec<_> =
            constants.map(|(origin, count)| format!("{count} {origin}")).collect();
        format!(
            "Of {} predictions {agree} agree within their tolerances, {no_evidence} agree as they \
             would if no setting changed anything, and {miss} do not. {values} of them are values: {within_5_percent} are within 5 %, {within_15_percent} within 15 %, {} \
             further away; {orders} are orders or inequalities. Besides, {set} numbers were used to \
             set constants, and {} cannot be made here.{failed} Constants: {}.",
            agree + no_evidence + miss,
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
            let mut seen = BTreeSet::new();
            for ConstantOutcome { constant, .. } in &seed.constants {
                // Some parts share one.
                if !seen.insert((&constant.option, constant.value.to_string())) {
                    continue;
                }
                let origin = format!("{:?}", constant.origin).to_lowercase();
                *tally.constants.entry(origin).or_default() += 1;
            }
            seed.parts.iter().flat_map(|part| &part.numbers).for_each(|it| tally.count(it));
        }
        tally
    }

    fn count(&mut self, number: &NumberOutcome) {
        match number.verdict {
            Agreement::Agrees => self.agree += 1,
            Agreement::NoEvidence => self.no_evidence += 1,
            Agreement::Misses => self.miss += 1,
            Agreement::Set => self.set += 1,
            Agreement::NotMade => {
                self.not_made += 1;
                self.failed += usize::from(number.failed);
            }
        }
        if matches!(number.verdict, Agreement::Set | Agreement::NotMade) {
            return;
        }
        if number.claim.values().is_none() {
            self.orders += 1;
            return;
        }
        self.values += 1;
        // Of a number without a percentage, such as 0, its own tolerance decides.
        let is_near = number.verdict != Agreement::Misses;
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
        let null = Null { value: f64::INFINITY, resolution: 0.0 };
        let verdict = claim.verdict(ours, null);
        NumberOutcome {
            what: String::new(),
            unit: String::new(),
            stated: claim.stated(),
            tolerance: claim.tolerance(),
            ours: Some(ours),
            nothing: None,
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
        tally.count(&NumberOutcome { verdict: Agreement::Set, ..outcome(1.0, 1.0) });
        let order = NumberOutcome { claim: Claim::Above(0.0), ..outcome(1.0, 1.0) };
        tally.count(&order);
        tally.count(&NumberOutcome { verdict: Agreement::NoEvidence, ..order });
        let expected = Tally {
            values: 4,
            within_5_percent: 2,
            within_15_percent: 3,
            agree: 3,
            miss: 2,
            orders: 2,
            no_evidence: 1,
            set: 1,
            ..Tally::default()
        };
        assert_eq!(tally, expected);
    }
}
