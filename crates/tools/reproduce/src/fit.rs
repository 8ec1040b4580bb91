//! Fits a machine's constants to the numbers of a document that set them, and shows how far each of
//! these would be off if the others alone had set the constants.
//!
//! The misfit is the sum of squares of two things: logarithms of ours over the document's, in
//! tolerances; and logarithms of constants over what is plausible, in factors of
//! two, so that a constant on which no number depends stays plausible. It is made small by
//! Gauss and Newton's method, with derivatives from runs. Everything is deterministic.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use bench::parallel;
use report::progress::Progress;
use serde::Serialize;

use crate::seed::Seed;
use crate::{Runs, Terms};

/// The constants that are fitted, in [their units](model::machine::Costs), as they are plausible:
/// those of an earlier fit by hand, to the same numbers, rounded.
const PLAUSIBLE: [(&str, f64); 10] = [
    ("interrupt", 700.0),
    ("packet", 750.0),
    ("handler", 600.0),
    ("copy", 1.1),
    ("send", 800.0),
    ("attach", 2_100.0),
    ("library", 1_000.0),
    ("moved", 2_200.0),
    ("moved_low", 0.1),
    ("page", 500.0),
];
/// A constant may well be larger or smaller by this factor.
const SPREAD: f64 = 2.0;
/// By how much a constant is changed for a derivative, as a logarithm: more than what the counting
/// of messages in a window makes of a change.
const STEP: f64 = 0.06;
/// Steps of a fit, each of which makes 14 runs of everything.
const STEPS: usize = 8;

/// A fit, with all numbers and without each.
#[derive(Debug, Serialize)]
pub struct Fit {
    /// The constants, by name.
    pub constants: BTreeMap<&'static str, f64>,
    /// The sum of squares.
    pub misfit: f64,
    /// The numbers that set constants.
    pub numbers: Vec<FittedNumber>,
}

/// A number that sets constants.
#[derive(Debug, Serialize)]
pub struct FittedNumber {
    /// The part of the document, and what the number is of.
    pub what: String,
    /// What the document states.
    pub stated: f64,
    /// What the model gives, in the same unit.
    pub ours: f64,
    /// By how many percent it differs.
    pub percent: f64,
    /// The same after a fit to all other numbers.
    pub percent_left_out: f64,
    /// The tolerance in percent.
    pub tolerance: f64,
}

/// What the constants are fitted to.
struct Problem {
    seed: Seed,
    /// Logarithms of what the document states, and tolerances, both of the numbers in order.
    wanted: Vec<(f64, f64)>,
}

/// Logarithms of constants over what is plausible, in the order of that list.
type Logarithms = [f64; PLAUSIBLE.len()];
/// Logarithms of our values of the numbers, in order.
type Ours = Vec<f64>;

impl Fit {
    /// Fits the constants of the machine of a document.
    ///
    /// # Errors
    /// A run that fails, and a document that sets no constants.
    pub fn of(document: &str) -> Result<Self> {
        let seed = Seed::chosen(Some(document))?.remove(0).calibration();
        let problem = Problem::of(seed)?;
        let everything = vec![true; problem.wanted.len()];
        let (point, ours) = problem.solve(&everything)?;
        let numbers = problem.seed.parts.iter().flat_map(|part| {
            part.numbers.iter().map(move |number| format!("{}: {}", part.name, number.what))
        });
        let mut fitted = Vec::new();
        for (left_out, what) in numbers.enumerate() {
            let mut counts = everything.clone();
            counts[left_out] = false;
            let (_, without) = problem.solve(&counts)?;
            let (stated, tolerance) = problem.wanted[left_out];
            let percent = |ours: &Ours| 100.0 * ((ours[left_out] - stated).exp() - 1.0);
            fitted.push(FittedNumber {
                what,
                stated: stated.exp(),
                ours: ours[left_out].exp(),
                percent: percent(&ours),
                percent_left_out: percent(&without),
                tolerance: 100.0 * tolerance,
            });
        }
        Ok(Self {
            constants: constants(&point).collect(),
            misfit: problem.misfit(&point, &ours, &everything),
            numbers: fitted,
        })
    }
}

fn constants(point: &Logarithms) -> impl Iterator<Item = (&'static str, f64)> {
    PLAUSIBLE.into_iter().zip(point).map(|((name, value), by)| (name, value * by.exp()))
}

impl Problem {
    fn of(seed: Seed) -> Result<Self> {
        let numbers = seed.parts.iter().flat_map(|part| &part.numbers);
        let wanted = numbers.map(|number| {
            let relative = number.claim.relative();
            let (value, tolerance) =
                relative.with_context(|| format!("{}: no value", number.what))?;
            Ok((value.ln(), tolerance))
        });
        let wanted = wanted.collect::<Result<Vec<_>>>()?;
        Ok(Self { seed, wanted })
    }

    /// Logarithms of ours.
    fn ours(&self, point: &Logarithms) -> Result<Ours> {
        let changes = constants(point).map(|(name, value)| format!("{name}={value}"));
        let mut seed = self.seed.clone();
        seed.change_machine(&changes.collect::<Vec<_>>().join(","));
        let terms = Terms { quick: false, npb: None };
        let seeds = [seed];
        let runs = Runs::of(&seeds, &terms)?;
        let outcome = runs.outcome(&seeds, runs.play(None, &Progress::new(true))?, &terms)?;
        let parts = outcome.seeds.iter().flat_map(|seed| &seed.parts);
        let ours = parts.flat_map(|part| &part.numbers).map(|number| {
            let value = number.ours.with_context(|| number.note.clone())?;
            Ok(value.max(f64::MIN_POSITIVE).ln())
        });
        ours.collect()
    }

    fn misfit(&self, point: &Logarithms, ours: &Ours, counts: &[bool]) -> f64 {
        let of_numbers = self.residuals(ours, counts).iter().map(|it| it * it).sum::<f64>();
        of_numbers + point.iter().map(|it| (it / SPREAD.ln()).powi(2)).sum::<f64>()
    }

    fn residuals(&self, ours: &Ours, counts: &[bool]) -> Vec<f64> {
        let each = ours.iter().zip(&self.wanted).zip(counts);
        each.map(
            |((ours, (wanted, within)), counts)| {
                if *counts { (ours - wanted) / within } else { 0.0 }
            },
        )
        .collect()
    }

    /// The point with the least misfit to numbers that count, from what is plausible, and ours
    /// there.
    fn solve(&self, counts: &[bool]) -> Result<(Logarithms, Ours)> {
        let mut best = [0.0; _];
        let mut ours = self.ours(&best)?;
        for _ in 0..STEPS {
            let shifted: Vec<Logarithms> = (0..best.len())
                .map(|at| {
                    let mut point = best;
                    point[at] += STEP;
                    point
                })
                .collect();
            let slopes = self.side_by_side(&shifted)?;
            let now = self.residuals(&ours, counts);
            let columns = slopes.iter().map(|shifted| {
                let then = self.residuals(shifted, counts);
                then.iter().zip(&now).map(|(then, now)| (then - now) / STEP).collect()
            });
            let direction = direction(&columns.collect::<Vec<_>>(), &now, &best);
            let lengths = [1.0, 0.6, 0.3, 0.1];
            let points = lengths.map(|length| {
                let mut point = best;
                point.iter_mut().zip(direction).for_each(|(it, by)| *it += length * by);
                point
            });
            let tried = self.side_by_side(&points)?;
            let each = points.into_iter().zip(tried);
            let misfit = |(point, ours): &(Logarithms, Ours)| self.misfit(point, ours, counts);
            let Some(found) = each.min_by(|a, b| misfit(a).total_cmp(&misfit(b))) else { break };
            if misfit(&found) >= self.misfit(&best, &ours, counts) {
                break;
            }
            (best, ours) = found;
        }
        Ok((best, ours))
    }

    /// Ours at some points, on all cores.
    fn side_by_side(&self, points: &[Logarithms]) -> Result<Vec<Ours>> {
        parallel::map(points, |point| self.ours(point))?.into_iter().collect()
    }
}

/// Where the misfit falls fastest: the solution of the normal equations, whose matrix is symmetric
/// and, by what is plausible, positive definite.
fn direction(columns: &[Vec<f64>], residuals: &[f64], point: &Logarithms) -> Logarithms {
    const N: usize = PLAUSIBLE.len();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let certain = SPREAD.ln().powi(-2);
    let mut rows = [[0.0; N + 1]; N];
    for (at, row) in rows.iter_mut().enumerate() {
        for (place, column) in row.iter_mut().zip(columns) {
            *place = dot(&columns[at], column);
        }
        row[at] += certain;
        row[N] = -dot(&columns[at], residuals) - certain * point[at];
    }
    for pivot in 0..N {
        let by = rows[pivot].map(|it| it / rows[pivot][pivot]);
        for (at, row) in rows.iter_mut().enumerate() {
            let factor = row[pivot];
            if at != pivot {
                row.iter_mut().zip(by).for_each(|(it, by)| *it -= factor * by);
            }
        }
        rows[pivot] = by;
    }
    rows.map(|row| row[N])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_solves_the_normal_equations() {
        // One number that is the product of the first two constants, off by three tolerances.
        let mut columns = vec![vec![0.0]; PLAUSIBLE.len()];
        (columns[0], columns[1]) = (vec![10.0], vec![10.0]);
        let found = direction(&columns, &[3.0], &[0.0; _]);
        assert!((found[0] - found[1]).abs() < 1e-9 && found[2] == 0.0, "{found:?}");
        assert!((-0.15..-0.14).contains(&found[0]), "{found:?}");
    }
}
