//! Each family's best explanation of the starters of one direction, and what it is worth.

use crate::explanation::{Fit, MAX_HOLD, MIN_NOISE, NEXT_TO_NOTHING, Shape, loss};
use crate::series::{Series, Starter};
use crate::stats::{cheapest, mode, narrowest, quantile, sorted, spread};
use crate::{deferral, frames, periodic, quiet, waking};

/// Nearly all: the others may be late by accident.
const NEARLY_ALL: f64 = 0.9;

/// How many values a search tries: holds of one family are all alike, so that of so many releases
/// several are of the hold.
const TRIED: usize = 160;

/// All explanations of a series, and the noise that the best of them leaves. Frame limits and
/// deferral are looked for on demand: they take longest, and say nothing about clocks.
pub(crate) fn all(series: &Series, starters: &[Starter], thorough: bool) -> (Vec<Fit>, f64) {
    let waits: Vec<f64> = starters.iter().map(Starter::wait).collect();
    // The noise has to be known to search, and the search to know the noise.
    let mut noise = spread(&waits).max(MIN_NOISE);
    if quantile(&sorted(waits.clone()), NEARLY_ALL) < NEXT_TO_NOTHING {
        let none = Fit::new(Shape::None, 0.0, waits.clone(), 0.0);
        let woken = waking::fit(&none, starters, noise);
        let quiet = quiet::fit(series, starters);
        return ([none, delay(&waits)].into_iter().chain(woken).chain(quiet).collect(), noise);
    }
    let mut fits = Vec::new();
    let after = released_after(starters);
    let periodic = periodic::fit(starters, tried(&after));
    let quiet = quiet::fit(series, starters);
    for _ in 0..2 {
        fits = vec![Fit::new(Shape::None, 0.0, waits.clone(), 0.0), delay(&waits)];
        fits.extend(throttle(starters, noise));
        fits.extend(periodic.iter().chain(&quiet).cloned());
        noise = least_spread(&fits);
    }
    if thorough {
        fits.extend(deferral::fit(series, starters, tried(&after), noise));
        noise = least_spread(&fits);
        fits.extend(frames::fit(series, starters, noise));
    }
    let woken: Vec<Fit> = fits.iter().filter_map(|fit| waking::fit(fit, starters, noise)).collect();
    fits.extend(woken);
    noise = least_spread(&fits);
    (fits, noise)
}

/// The noise that the best of them leaves.
fn least_spread(fits: &[Fit]) -> f64 {
    let least = fits.iter().map(|fit| spread(&fit.residuals)).fold(f64::INFINITY, f64::min);
    least.max(MIN_NOISE)
}

/// Every starter waits for as long.
fn delay(waits: &[f64]) -> Fit {
    let usecs = mode(waits);
    Fit::new(Shape::Delay, usecs, waits.iter().map(|wait| wait - usecs).collect(), 1.0)
}

/// A starter has waited for a gap if it came earlier than its end by so many standard deviations
/// of the noise: one in forty would seem to by chance.
const EARLIER: f64 = 2.0;

/// Releases that end a gap are near it, in standard deviations of the noise and as a share of the
/// gap. Wide enough for heavy tails, since their mode is taken: strays do not move it.
const NEAR: f64 = 6.0;
const NEAR_SHARE: f64 = 0.02;

/// Fewer values have no mode worth the name.
const FEW: usize = 5;

/// Who counts as held waits for so many standard deviations of the noise, and a microsecond,
const HELD: f64 = 3.0;
const HELD_USECS: f64 = 1.0;

/// and for this share of the gap: packets that just miss its end would count for gaps that are too
/// long.
const HELD_SHARE: f64 = 0.15;

/// Held is who waits for most of what the gap says.
const MOSTLY: f64 = 0.5;

/// A gap that makes fewer than this wait, or than one in so many, is an accident. In 60 cases of
/// the model no verdict is another one with 6 or 24 of them, in 40 none with one in 30; with one in
/// 8, two throttles beside bulk are missed.
const HELD_COUNT: usize = 12;
const HELD_ONE_IN: usize = 15;

/// Every starter waits until a gap has passed since the last release.
fn throttle(starters: &[Starter], noise: f64) -> Option<Fit> {
    let residuals = |gap: f64| -> Vec<f64> {
        let expected = |starter: &Starter| starter.arrived.max(starter.last + gap);
        starters.iter().map(|starter| starter.released - expected(starter)).collect()
    };
    let gaps = released_after(starters);
    let cost = |gap: &f64| loss(residuals(*gap), noise);
    let best = cheapest(tried(&gaps), cost)?;
    // The gaps of those who really waited, which noise moves to both sides alike.
    let waited: Vec<f64> = starters
        .iter()
        .filter(|starter| starter.last + best > starter.arrived + EARLIER * noise)
        .map(|starter| starter.released - starter.last)
        .filter(|gap| (gap - best).abs() < NEAR * noise + NEAR_SHARE * best)
        .collect();
    let best = if waited.len() < FEW { best } else { mode(&waited) };
    // A gap that no packet waits for is none: packets came that far apart by themselves.
    let least = (HELD * noise + HELD_USECS).max(HELD_SHARE * best);
    let held = |starter: &&Starter| {
        let wait = starter.last + best - starter.arrived;
        wait > least && starter.wait() > MOSTLY * wait
    };
    let held = starters.iter().filter(held).count();
    (held >= HELD_COUNT && HELD_ONE_IN * held >= starters.len())
        .then(|| Fit::new(Shape::Throttle, best, residuals(best), 1.0))
}

/// How long after the last release each starter was reported, sorted.
fn released_after(starters: &[Starter]) -> Vec<f64> {
    let gaps = starters.iter().map(|starter| starter.released - starter.last);
    sorted(gaps.filter(|gap| *gap > MIN_NOISE && *gap < MAX_HOLD).collect())
}

/// Evenly chosen ones of sorted values.
fn tried(sorted: &[f64]) -> impl Iterator<Item = f64> {
    let step = sorted.len().div_ceil(TRIED).max(1);
    sorted.iter().copied().step_by(step)
}

/// Residuals within so many standard deviations of the noise belong to its cluster: all but one in
/// a million of a normal distribution, and most of a heavy tail.
const CLUSTER: f64 = 5.0;

/// The lower edge of a cluster: what floors are, but for a stray.
const LOWER_EDGE: f64 = 0.02;

/// Noise to one side has its mode no more than this many standard deviations above its edge: an
/// even distribution's middle is 1.7 above it, an exponential one's is on it.
const ABOVE_EDGE: f64 = 1.5;

/// By how much a zero wait is reported late as a rule: the middle of the noise over its lower edge,
/// which is what floors are.
pub(crate) fn usual_lateness(residuals: &[f64], noise: f64) -> f64 {
    let centre = mode(residuals);
    let near =
        residuals.iter().copied().filter(|residual| (residual - centre).abs() < CLUSTER * noise);
    let near = sorted(near.collect());
    let (from, to, _) = narrowest(&near, NEARLY_ALL);
    let cluster = &near[from..to];
    (centre - quantile(cluster, LOWER_EDGE)).clamp(0.0, ABOVE_EDGE * noise)
}
