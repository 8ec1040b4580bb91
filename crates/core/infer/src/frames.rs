//! A delay with a frame limit: a packet is released by the timer, or by the one that makes enough.
//!
//! Packets of others are counted as well, and are not seen here: beside bulk, a burst of mine
//! is released some packets early. How many of them come in a time is Poisson's, so the limit, the
//! delay and the others' rate are fitted together, by the likelihood of each wait under any number
//! of others. Without others this is the distance from the one moment that is possible.

use crate::explanation::{Fit, MAX_HOLD, Shape, loss};
use crate::series::{Reception, Series, Starter};
use crate::stats::{cheapest, mode, quantile, sorted};
use crate::train::Purpose;

const HIGHEST: usize = 128;

/// How far the search by coarse steps may be off.
const NEAR: usize = 8;

/// Rates of others that are tried, per microsecond: up to ten thousand a second, beside
/// which every timer always runs; a first, coarse search tries one in the middle.
const OTHERS: [f64; 5] = [0.0, 0.001, 0.002_5, 0.005, 0.01];
const SOME_OTHERS: [f64; 2] = [0.0, 0.005];

/// More of them than this before a release are not distinguished.
const MAX_OTHERS: usize = 12;

/// What all waits have on top is the noise's middle over its edge, some half of a standard
/// deviation of it; one more, to either side, costs as much as four packets that are off by it.
/// Without a price, lateness would stand in for a limit that is one too low.
const LATE: f64 = 3.0;
const USUALLY_LATE: f64 = 0.5;

/// Lateness is tried in steps of this share of the noise, from a deviation before its edge to two
/// behind it.
const LATE_STEP: f64 = 0.5;
const LATES: core::ops::RangeInclusive<i32> = -2..=4;

/// A poll's step and its neighbour's are not distinguished below this, in microseconds, however
/// little noise there is; packets of one burst are as close.
const MIN_BLUR: f64 = 0.3;

/// Others' timer that was running when mine came had been for a part of its time: a sixth, a half
/// or five sixths, the middles of thirds.
const RUNNING: [f64; 3] = [1.0 / 6.0, 0.5, 5.0 / 6.0];

/// A limit shows where it releases before this share of the timer's time: later ones may be noise.
/// Fewer such packets are chance.
const EARLY: f64 = 0.9;
const FEW_EARLY: usize = 6;

/// The timer shows where the limit would come later by so many standard deviations of the noise.
/// Fewer such waits have no mode worth the name.
const FREE: f64 = 3.0;
const FEW_FREE: usize = 5;

/// Where the packet before was reported only just now, in microseconds, it is uncertain which the
/// NIC counts.
const CLEAR: f64 = 20.0;

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
    fn residual(&self, starter: &Starter, points: &[Reception], noise: f64) -> f64 {
        let until = |frames| until(points, starter, frames);
        let mine = self.frames - 1;
        let mut chances = self.chances(until(mine).min(self.usecs));
        let (mut likely, mut most, mut left) = (0.0, 0.0, 0.0);
        for others in 0..=mine.min(MAX_OTHERS) {
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
        let [early, middle, late] = RUNNING;
        let pending = [0.0, early, middle, late];
        let weights = [idle, (1.0 - idle) / 3.0, (1.0 - idle) / 3.0, (1.0 - idle) / 3.0];
        core::array::from_fn(|at| {
            let expected = self.others * (span + pending[at] * self.usecs);
            (expected, weights[at] * (-expected).exp())
        })
    }

    /// What it costs to explain the waits so: less is better.
    fn cost(&self, starters: &[&Starter], points: &[Reception], noise: f64) -> f64 {
        let residuals = starters.iter().map(|starter| self.residual(starter, points, noise));
        loss(residuals, noise) + LATE * (self.late / noise - USUALLY_LATE).powi(2)
    }
}

/// How long after a starter so many more came, in microseconds.
fn until(points: &[Reception], starter: &Starter, more: usize) -> f64 {
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
    let blur = noise.max(MIN_BLUR);
    let cost = |limit: &Limited| limit.cost(&clean, points, blur);
    let guess = cheapest(coarsely(&clean), cost)?;
    let frames = guess.frames.saturating_sub(NEAR).max(2)..=guess.frames + NEAR;
    let fine = frames.flat_map(|frames| {
        let lates = LATES.map(|step| f64::from(step) * LATE_STEP * blur);
        lates.flat_map(move |late| OTHERS.map(|others| Limited { frames, others, late, ..guess }))
    });
    let limit = cheapest(fine, cost)?;
    let is_early =
        |starter: &&&Starter| until(points, starter, limit.frames - 1) < EARLY * limit.usecs;
    if clean.iter().filter(is_early).count() < FEW_EARLY {
        return None;
    }
    // The timer itself shows where the limit is not reached.
    let is_free =
        |starter: &&Starter| until(points, starter, limit.frames - 1) > limit.usecs + FREE * noise;
    let free: Vec<f64> = starters.iter().filter(is_free).map(Starter::wait).collect();
    let usecs = if free.len() < FEW_FREE { limit.usecs + limit.late } else { mode(&free) };
    let limit = Limited { usecs: usecs - limit.late, ..limit };
    let residuals = starters.iter().map(|starter| limit.residual(starter, points, noise)).collect();
    let mut fit = Fit::new(Shape::Delay, usecs, residuals, 3.0);
    fit.frames = Some(limit.frames as u32);
    Some(fit)
}

/// Limits of every height with delays that some waits suggest.
fn coarsely(clean: &[&Starter]) -> impl Iterator<Item = Limited> {
    let holds = clean.iter().map(|starter| starter.wait()).filter(|wait| *wait < MAX_HOLD);
    let holds = sorted(holds.collect());
    // Among the longest waits: where the limit is not reached.
    let holds = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95].map(|at| quantile(&holds, at));
    holds.into_iter().flat_map(|usecs| {
        (2..=HIGHEST).flat_map(move |frames| {
            SOME_OTHERS.map(|others| Limited { usecs, frames, others, late: 0.0 })
        })
    })
}
