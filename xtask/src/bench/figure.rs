//! One measured figure: the spread of repeated runs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a figure should reach.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

/// The least, the median and the largest value of several runs.
#[derive(Debug, Serialize, PartialEq)]
pub(super) struct Spread {
    pub name: String,
    pub unit: String,
    pub runs: usize,
    pub min: f64,
    pub median: f64,
    pub max: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
}

impl Spread {
    /// The figure of at least one run.
    pub(super) fn new(name: &str, unit: &str, mut values: Vec<f64>, goal: Option<Goal>) -> Self {
        values.sort_by(f64::total_cmp);
        let (name, unit, runs) = (name.to_owned(), unit.to_owned(), values.len());
        // One and the same for an odd number of runs.
        let median = f64::midpoint(values[(runs - 1) / 2], values[runs / 2]);
        Self { name, unit, runs, min: values[0], median, max: values[runs - 1], goal }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, unit, runs, min, median, max, goal } = self;
        // Of small numbers, such as ratios, the digits behind the point matter.
        let digits = if *median < 10.0 { 3 } else { 1 };
        write!(f, "{name}\n    {median:.digits$} ({min:.digits$} to {max:.digits$}) {unit}")?;
        write!(f, ", {runs} runs")?;
        let (word, bound, is_met) = match *goal {
            Some(Goal::AtMost(most)) => ("most", most, *median <= most),
            Some(Goal::AtLeast(least)) => ("least", least, *median >= least),
            None => return Ok(()),
        };
        write!(f, ", goal at {word} {bound}: {}", if is_met { "met" } else { "MISSED" })
    }
}
