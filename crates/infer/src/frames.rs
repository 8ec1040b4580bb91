//! A delay with a frame limit: a packet is released by the timer, or by the one that makes enough.
//!
//! Packets of others are counted as well, and nobody here sees them: beside bulk, a burst of mine
//! is released some packets early. How many of them come in a time is Poisson's, so the limit, the
//! delay and the others' rate are fitted together, by the likelihood of each wait under any number
//! of others. Without others this is the distance from the one moment that is possible.

use crate::fit::{Fit, LONGEST, Shape, loss};
use crate::plan::Purpose;
use crate::series::{Point, Series, Starter};
use crate::stats::{cheapest, mode, quantile, sorted};

/// The highest limit that is looked for.
const HIGHEST: usize = 128;

/// How far the search by coarse steps may be off.
const NEAR: usize = 8;

/// Rates of others that are tried, per microsecond.
const OTHERS: [f64; 5] = [0.0, 0.001, 0.002_5, 0.005, 0.01];

/// More of them than this before a release are not told apart.
const MOST_OTHERS: usize = 12;

/// What it costs that limits release much later than timers do, or much earlier.
const LATE: f64 = 3.0;

/// Where the packet before was told of only just now, in microseconds, it is uncertain whom the NIC
/// counts.
const CLEAR: f64 = 20.0;

/// A delay with a limit.
#[derive(Clone, Copy, Debug)]
struct Limited {
    /// The delay, in microseconds.
    usecs: f64,
    /// The packets that release without it.
    frames: usize,
    /// How many of others come in a microsecond.
    others: f64,
    /// What all waits have on top, in microseconds.
    late: f64,
}

impl Limited {
    /// What is left of a starter's wait.
    ///
    /// It is as far off as one certain moment would be that were as unlikely, so that it compares
    /// with what other families leave.
    fn residual(&self, starter: &Starter, points: &[Point], noise: f64) -> f64 {
        let until = |frames| until(points, starter, frames);
        let mine = self.frames - 1;
        let mut chances = self.chances(until(mine).min(self.usecs));
        let (mut likely, mut most, mut left) = (0.0, 0.0, 0.0);
        for others in 0..=mine.min(MOST_OTHERS) {
            let off = starter.wait() - self.late - until(mine - others).min(self.usecs);
            let chance: f64 = chances.iter().map(|(_, chance)| chance).sum();
            let part = chance / (1.0 + (off / noise).powi(2));
            likely += part;
            if part > most {
                (most, left) = (part, off);
            }
            for (expected, chance) in &mut chances {
                *chance *= *expected / (others + 1) as f64;
            }
            if self.others == 0.0 {
                break;
            }
        }
        let distance = noise * (1.0 / likely.max(1e-12) - 1.0).max(0.0).sqrt();
        distance.copysign(left)
    }

    /// How many others are expected to be counted with packets of mine that come within `span`, and
    /// how likely it is that there are none: if nothing of others was pending when mine came, and
    /// if something had been for a while.
    fn chances(&self, span: f64) -> [(f64, f64); 4] {
        let idle = 1.0 / (1.0 + self.others * self.usecs);
        let pending = [0.0, 1.0 / 6.0, 0.5, 5.0 / 6.0];
        let weights = [idle, (1.0 - idle) / 3.0, (1.0 - idle) / 3.0, (1.0 - idle) / 3.0];
        std::array::from_fn(|at| {
            let expected = self.others * (span + pending[at] * self.usecs);
            (expected, weights[at] * (-expected).exp())
        })
    }

    /// What it costs to explain the waits so: less is better.
    fn cost(&self, starters: &[&Starter], points: &[Point], noise: f64) -> f64 {
        let residuals = starters.iter().map(|starter| self.residual(starter, points, noise));
        loss(residuals, noise) + LATE * (self.late / noise - 0.5).powi(2)
    }
}

/// How long after a starter so many more came, in microseconds.
fn until(points: &[Point], starter: &Starter, more: usize) -> f64 {
    let last = points.get(starter.at + more);
    last.map_or(f64::INFINITY, |last| (last.arrived - starter.arrived).max(0.0))
}

/// The best explanation of starters by a delay with a limit, if there is any.
pub(crate) fn fit(series: &Series, starters: &[Starter], noise: f64) -> Option<Fit> {
    let points = series.points.as_slice();
    let is_brief = |starter: &&Starter| {
        starter.idle > CLEAR
            && matches!(points[starter.at].purpose, Purpose::Lone | Purpose::Pair | Purpose::Burst)
    };
    let clean: Vec<&Starter> = starters.iter().filter(is_brief).collect();
    let blur = noise.max(0.3);
    let cost = |limit: &Limited| limit.cost(&clean, points, blur);
    let guess = cheapest(coarsely(&clean), cost)?;
    let frames = guess.frames.saturating_sub(NEAR).max(2)..=guess.frames + NEAR;
    let fine = frames.flat_map(|frames| {
        let lates = (-2..=4).map(|step| f64::from(step) * 0.5 * blur);
        lates.flat_map(move |late| OTHERS.map(|others| Limited { frames, others, late, ..guess }))
    });
    let limit = cheapest(fine, cost)?;
    let is_early =
        |starter: &&&Starter| until(points, starter, limit.frames - 1) < 0.9 * limit.usecs;
    if clean.iter().filter(is_early).count() < 6 {
        return None;
    }
    // The timer itself shows where the limit is not reached.
    let is_free =
        |starter: &&Starter| until(points, starter, limit.frames - 1) > limit.usecs + 3.0 * noise;
    let free: Vec<f64> = starters.iter().filter(is_free).map(Starter::wait).collect();
    let usecs = if free.len() < 5 { limit.usecs + limit.late } else { mode(&free) };
    let limit = Limited { usecs: usecs - limit.late, ..limit };
    let residuals = starters.iter().map(|starter| limit.residual(starter, points, noise)).collect();
    let mut fit = Fit::new(Shape::Delay, usecs, residuals, 3.0);
    fit.frames = Some(limit.frames as u32);
    Some(fit)
}

/// Limits of every height with delays that some waits suggest.
fn coarsely(clean: &[&Starter]) -> impl Iterator<Item = Limited> {
    let holds = clean.iter().map(|starter| starter.wait()).filter(|wait| *wait < LONGEST);
    let holds = sorted(holds.collect());
    // Among the longest waits: where the limit is not reached.
    let holds = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95].map(|at| quantile(&holds, at));
    holds.into_iter().flat_map(|usecs| {
        (2..=HIGHEST).flat_map(move |frames| {
            [0.0, 0.005].map(|others| Limited { usecs, frames, others, late: 0.0 })
        })
    })
}
