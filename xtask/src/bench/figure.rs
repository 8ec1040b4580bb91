//! One measured figure.

use std::fmt;

use serde::Serialize;

/// What a figure should reach.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Goal {
    /// As many or fewer.
    AtMost(f64),
    /// As many or more.
    AtLeast(f64),
}

/// The spread of repeated runs.
#[derive(Debug, Serialize, PartialEq)]
pub(super) struct Figure {
    pub name: String,
    pub unit: &'static str,
    pub runs: usize,
    pub min: f64,
    pub median: f64,
    pub max: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
}

impl Figure {
    pub(super) const HEADING: &'static str =
        "                             median            min            max  unit";

    /// The figure of these runs, of which there must be one at least.
    pub(super) fn new(name: String, unit: &'static str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let [min, .., max] = values[..] else {
            let only = values[0];
            return Self { name, unit, runs: 1, min: only, median: only, max: only, goal: None };
        };
        // One and the same for an odd number of runs.
        let (below, above) = ((values.len() - 1) / 2, values.len() / 2);
        let median = f64::midpoint(values[below], values[above]);
        Self { name, unit, runs: values.len(), min, median, max, goal: None }
    }

    /// The same figure with a goal.
    pub(super) fn with_goal(self, goal: Goal) -> Self {
        Self { goal: Some(goal), ..self }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, unit, runs, min, median, max, goal } = self;
        writeln!(f, "{name}")?;
        // Of small numbers, such as ratios, the digits behind the point matter.
        let digits = if *median < 10.0 { 3 } else { 1 };
        write!(f, "{:20}{median:>15.digits$}{min:>15.digits$}{max:>15.digits$}", "")?;
        write!(f, "  {unit}, {runs} runs")?;
        match goal {
            Some(Goal::AtMost(most)) => {
                write!(f, ", goal <= {most}: {}", met(median <= most))
            }
            Some(Goal::AtLeast(least)) => {
                write!(f, ", goal >= {least}: {}", met(median >= least))
            }
            None => Ok(()),
        }
    }
}

const fn met(reached: bool) -> &'static str {
    if reached { "met" } else { "MISSED" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[f64]) -> (f64, f64, f64) {
        let figure = Figure::new("a".into(), "b", values.to_vec());
        assert_eq!(figure.runs, values.len());
        (figure.min, figure.median, figure.max)
    }

    #[test]
    fn median_is_the_middle() {
        assert_eq!(spread(&[3.0]), (3.0, 3.0, 3.0));
        assert_eq!(spread(&[3.0, 1.0]), (1.0, 2.0, 3.0));
        assert_eq!(spread(&[9.0, 1.0, 2.0]), (1.0, 2.0, 9.0));
    }

    #[test]
    fn missed_goal_is_said() {
        let figure = Figure::new("a".into(), "b", vec![2.0]);
        assert!(figure.with_goal(Goal::AtMost(1.0)).to_string().ends_with("<= 1: MISSED"));
        let figure = Figure::new("a".into(), "b", vec![2.0]);
        assert!(figure.with_goal(Goal::AtLeast(1.0)).to_string().ends_with(">= 1: met"));
    }
}
