//! Our figure beside a number of a document: a figure of a run, or the difference, the sum or the
//! ratio of two.
//!
//! `{ of = "large delay:75 half" }` is half a round trip of the run `large` under `delay:75`.
//! `minus`, `plus` and `over`, in this order, take a figure or a number each. A run under one
//! setting needs no setting in between; `tuned throttle:10@3 transactions` is with three clients.
//!
//! Its value if no setting changed anything has another figure in place of `of`: that which it is
//! compared with, or else `nothing`, or else the same under the setting that the part names.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, ensure};
use bench::compare::{Comparison, not_measured};
use bench::measurement::Measurement;
use serde::Deserialize;

use crate::claim::Null;
use crate::figure::Figure;

/// Figures that differ by no more count as equal. A rate is counted in a window that begins
/// and ends somewhere within a hold: 75 us of the shortest one, 20 ms, at each end, are 0.75 %.
const RESOLUTION: f64 = 0.01;

/// Results of the runs of a part, by name, or why a run has none.
pub type Results = BTreeMap<String, Result<Comparison, String>>;

/// A figure, less, plus and over others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Formula {
    of: Reference,
    minus: Option<Term>,
    plus: Option<Term>,
    over: Option<Term>,
    nothing: Option<Reference>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a figure as in `large delay:75 half`")]
enum Term {
    Constant(f64),
    Figure(Reference),
}

/// A figure of one setting of one run.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Reference {
    run: String,
    setting: Option<String>,
    clients: Option<u32>,
    figure: Figure,
}

impl TryFrom<String> for Reference {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (run, setting, figure) = match text.split_whitespace().collect::<Vec<_>>()[..] {
            [run, figure] => (run, None, figure),
            [run, setting, figure] => (run, Some(setting), figure),
            _ => return Err(format!("`{text}`: a figure is RUN [SETTING[@CLIENTS]] FIGURE")),
        };
        let (setting, clients) = match setting.and_then(|it| it.split_once('@')) {
            Some((setting, clients)) => {
                let clients =
                    clients.parse().map_err(|_| format!("`{text}`: how many clients?"))?;
                (Some(setting), Some(clients))
            }
            None => (setting, None),
        };
        let setting = setting.map(str::to_owned);
        Ok(Self { run: run.into(), setting, clients, figure: figure.parse()? })
    }
}

impl Formula {
    /// The runs that it looks at.
    pub fn runs(&self) -> impl Iterator<Item = &str> {
        let terms = [&self.minus, &self.plus, &self.over].into_iter().flatten();
        let others = terms.filter_map(|term| match term {
            Term::Figure(reference) => Some(reference.run.as_str()),
            Term::Constant(_) => None,
        });
        let nothing = self.nothing.iter().map(|reference| reference.run.as_str());
        std::iter::once(self.of.run.as_str()).chain(others).chain(nothing)
    }

    /// The runs and settings whose figures its value is made of.
    pub(crate) fn needs(&self) -> Vec<(String, Option<String>)> {
        let terms = [&self.minus, &self.plus, &self.over].into_iter().flatten();
        let others = terms.filter_map(|term| match term {
            Term::Figure(reference) => Some(reference),
            Term::Constant(_) => None,
        });
        let all = std::iter::once(&self.of).chain(others);
        all.map(|reference| (reference.run.clone(), reference.setting.clone())).collect()
    }

    /// Takes the figure under `setting` of the same run for `nothing`, if there is no other.
    pub(crate) fn with_nothing(&mut self, setting: &str) {
        if self.compared().is_none() {
            self.nothing = Some(Reference { setting: Some(setting.into()), ..self.of.clone() });
        }
    }

    /// The figure that stands for `of` where no setting changes anything.
    fn compared(&self) -> Option<&Reference> {
        let terms = [&self.minus, &self.over].into_iter().flatten();
        let mut figures = terms.filter_map(|term| match term {
            Term::Figure(reference) => Some(reference),
            Term::Constant(_) => None,
        });
        self.nothing.as_ref().or_else(|| figures.next())
    }

    /// Whether it is known what it would be if no setting changed anything.
    pub(crate) fn has_null(&self) -> bool {
        self.compared().is_some()
    }

    /// What it would be if no setting changed anything.
    pub fn null(&self, results: &Results) -> Result<Null> {
        let of = self.compared().context("what it would be if nothing changed is not known")?;
        let of = Self { of: of.clone(), ..self.clone() };
        let over = self.over.as_ref().map_or(Ok(1.0), |over| over.value(results))?;
        let minus = self.minus.as_ref().map_or(Ok(0.0), |minus| minus.value(results))?;
        let largest = [self.of.value(results)?, of.of.value(results)?, minus]
            .into_iter()
            .map(f64::abs)
            .fold(0.0, f64::max);
        let resolution = RESOLUTION * largest / over.abs();
        Ok(Null { value: of.value(results)?, resolution })
    }

    /// The value of the formula.
    pub fn value(&self, results: &Results) -> Result<f64> {
        let term = |term: &Option<Term>, neutral: f64| {
            term.as_ref().map_or(Ok(neutral), |term| term.value(results))
        };
        let sum = self.of.value(results)? - term(&self.minus, 0.0)? + term(&self.plus, 0.0)?;
        Ok(sum / term(&self.over, 1.0)?)
    }
}

impl Term {
    fn value(&self, results: &Results) -> Result<f64> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Figure(reference) => reference.value(results),
        }
    }
}

impl Reference {
    fn value(&self, results: &Results) -> Result<f64> {
        let run = results.get(&self.run).with_context(|| format!("no run {}", self.run))?;
        let run = run.as_ref().map_err(|why| anyhow!("{why}"))?;
        let is_it = |result: &&Measurement| {
            let setting = result.setting.split(' ').next();
            self.setting.is_none() || setting == self.setting.as_deref()
        };
        let cells: Vec<&Measurement> = run.results.iter().filter(is_it).collect();
        let setting = self.setting.as_deref().unwrap_or("its setting");
        let place = || format!("{} of run {} under {setting}", self.figure.name(), self.run);
        let one =
            cells.iter().filter(|cell| self.clients.is_none_or(|it| cell.clients == Some(it)));
        let one: Vec<&Measurement> = one.copied().collect();
        ensure!(!one.is_empty(), "{}: there is no such result", place());
        let value = self.figure.value(&one);
        let why = not_measured(one.iter().copied());
        value.with_context(|| format!("{}: nothing was measured.{why}", place()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_has_two_or_three_words() {
        let whole: Reference = "tuned throttle:10@3 transactions".parse().unwrap();
        assert_eq!((whole.run.as_str(), whole.clients), ("tuned", Some(3)));
        assert_eq!(whole.setting.as_deref(), Some("throttle:10"));
        let short: Reference = "ping p50".parse().unwrap();
        assert!(short.setting.is_none() && short.figure.name() == "p50");
        for wrong in ["p50", "a b c d", "run s@x p50"] {
            assert!(wrong.parse::<Reference>().is_err(), "{wrong}");
        }
        let error = "run s p51".parse::<Reference>().unwrap_err();
        assert!(error.contains("no figure `p51`; there are min, p50"), "{error}");
    }

    #[test]
    fn a_formula_names_each_of_its_runs() {
        let text = "of = 'a x p50'\nminus = 'b x p50'\nover = 2.0";
        let formula: Formula = toml::from_str(text).unwrap();
        assert_eq!(formula.runs().collect::<Vec<_>>(), ["a", "b"]);
        assert!(toml::from_str::<Formula>("of = 'a p50'\ntimes = 2.0").is_err());
    }

    #[test]
    fn nothing_is_what_it_is_compared_with_or_the_same_under_another_setting() {
        let compared = |text: &str| {
            let mut formula: Formula = toml::from_str(text).unwrap();
            formula.with_nothing("disabled");
            let reference = formula.compared().unwrap();
            format!("{} {:?}", reference.run, reference.setting.as_deref().unwrap_or_default())
        };
        assert_eq!(compared("of = 'a x p50'\nminus = 'b y p50'"), "b \"y\"");
        assert_eq!(compared("of = 'a x p50'\nover = 'b y p50'"), "b \"y\"");
        assert_eq!(compared("of = 'a x p50'\nover = 125.0"), "a \"disabled\"");
        assert_eq!(compared("of = 'a x p50'\nnothing = 'c p50'"), "c \"\"");
    }

    #[test]
    fn a_result_that_is_not_there_is_an_error_that_names_it() {
        let formula: Formula = toml::from_str("of = 'a delay:75 p50'").unwrap();
        let error = format!("{:#}", formula.value(&Results::new()).unwrap_err());
        assert!(error.contains("no run a"), "{error}");
    }
}
