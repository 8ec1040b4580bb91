//! Each family's best explanation of the starters of one direction, and what it is worth.

use std::f64::consts::TAU;

use crate::frames;
use crate::series::{Series, Starter};
use crate::stats::{cheapest, mode, narrowest, quantile, slope, sorted, spread};

/// The longest hold that is looked for, in microseconds.
pub(crate) const LONGEST: f64 = 1_500.0;

/// The least noise that is believed, in microseconds: stamps are not better than that.
const LEAST_NOISE: f64 = 0.05;

/// Where nearly all wait for less, in microseconds, there is nothing to explain.
const NEXT_TO_NOTHING: f64 = 1.5;

/// No idle state is entered after less than this, in microseconds; what begins so early is a hold.
const LEAST_RESIDENCY: f64 = 5.0;

/// How many values a search tries.
const TRIED: usize = 160;

/// The shapes that a wait can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    None,
    Delay,
    Throttle,
    Periodic { phase: f64 },
    Adaptive,
}

/// A wait that comes on top where nothing had been told for a while: an idle state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Waking {
    /// Idle for longer than this, in microseconds.
    pub(crate) after: f64,
    /// Takes so many microseconds.
    pub(crate) takes: f64,
}

/// One explanation.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    pub(crate) shape: Shape,
    /// The hold in microseconds; of an adaptive one, the longest level.
    pub(crate) usecs: f64,
    pub(crate) frames: Option<u32>,
    pub(crate) waking: Option<Waking>,
    /// What is left of each starter's wait, without what all have in common.
    pub(crate) residuals: Vec<f64>,
    parameters: f64,
}

impl Fit {
    pub(crate) fn new(shape: Shape, usecs: f64, residuals: Vec<f64>, parameters: f64) -> Self {
        Self { shape, usecs, frames: None, waking: None, residuals, parameters }
    }

    /// What it costs to explain the waits so: less is better. `noise` is that of the best
    /// explanation.
    pub(crate) fn cost(&self, noise: f64) -> f64 {
        let count = self.residuals.len().max(2) as f64;
        // Noise is never negative: what all have in common may be a little, and not a hold.
        let common = mode(&self.residuals).clamp(-noise, NEXT_TO_NOTHING.max(3.0 * noise));
        loss(self.residuals.iter().map(|residual| residual - common), noise)
            + 1.5 * self.parameters * count.ln()
    }
}

/// The negative logarithm of a Cauchy likelihood.
pub(crate) fn loss(residuals: impl IntoIterator<Item = f64>, noise: f64) -> f64 {
    residuals.into_iter().map(|residual| (1.0 + (residual / noise).powi(2)).ln()).sum()
}

/// All explanations of a series, and the noise that the best of them leaves. Frame limits are
/// looked for on demand: they take longest, and say nothing about clocks.
pub(crate) fn all(series: &Series, starters: &[Starter], with_frames: bool) -> (Vec<Fit>, f64) {
    let waits: Vec<f64> = starters.iter().map(Starter::wait).collect();
    // The noise has to be known to search, and the search to know the noise.
    let mut noise = spread(&waits).max(LEAST_NOISE);
    if quantile(&sorted(waits.clone()), 0.9) < NEXT_TO_NOTHING {
        let none = Fit::new(Shape::None, 0.0, waits.clone(), 0.0);
        let woken = with_waking(&none, starters, noise);
        return ([none, delay(&waits)].into_iter().chain(woken).collect(), noise);
    }
    let mut fits = Vec::new();
    let periodic = periodic(starters);
    for _ in 0..2 {
        fits = vec![Fit::new(Shape::None, 0.0, waits.clone(), 0.0), delay(&waits)];
        fits.extend(throttle(starters, noise));
        fits.extend(periodic.clone());
        let least = fits.iter().map(|fit| spread(&fit.residuals)).fold(f64::INFINITY, f64::min);
        noise = least.max(LEAST_NOISE);
    }
    fits.extend(with_frames.then(|| frames::fit(series, starters, noise)).flatten());
    let woken: Vec<Fit> = fits.iter().filter_map(|fit| with_waking(fit, starters, noise)).collect();
    fits.extend(woken);
    let least = fits.iter().map(|fit| spread(&fit.residuals)).fold(f64::INFINITY, f64::min);
    (fits, least.max(LEAST_NOISE))
}

/// Every starter waits for as long.
fn delay(waits: &[f64]) -> Fit {
    let usecs = mode(waits);
    Fit::new(Shape::Delay, usecs, waits.iter().map(|wait| wait - usecs).collect(), 1.0)
}

/// Every starter waits until a gap has passed since the last release.
fn throttle(starters: &[Starter], noise: f64) -> Option<Fit> {
    let residuals = |gap: f64| -> Vec<f64> {
        let told = |starter: &Starter| starter.arrived.max(starter.last + gap);
        starters.iter().map(|starter| starter.released - told(starter)).collect()
    };
    let gaps = released_after(starters);
    let cost = |gap: &f64| loss(residuals(*gap), noise);
    let best = cheapest(tried(&gaps), cost)?;
    // The gaps of those who really waited, which noise moves to both sides alike.
    let waited: Vec<f64> = starters
        .iter()
        .filter(|starter| starter.last + best > starter.arrived + 2.0 * noise)
        .map(|starter| starter.released - starter.last)
        .filter(|gap| (gap - best).abs() < 6.0 * noise + 0.02 * best)
        .collect();
    let best = if waited.len() < 5 { best } else { mode(&waited) };
    // A gap that nobody has to wait for is none: packets came that far apart by themselves.
    let least = (3.0 * noise + 1.0).max(0.15 * best);
    let held = |starter: &&Starter| {
        let wait = starter.last + best - starter.arrived;
        wait > least && starter.wait() > 0.5 * wait
    };
    let held = starters.iter().filter(held).count();
    // Nor is one that only some accident makes anyone wait for.
    (held >= 12 && 15 * held >= starters.len())
        .then(|| Fit::new(Shape::Throttle, best, residuals(best), 1.0))
}

/// How long after the last release each starter was told of, sorted.
fn released_after(starters: &[Starter]) -> Vec<f64> {
    let gaps = starters.iter().map(|starter| starter.released - starter.last);
    sorted(gaps.filter(|gap| *gap > LEAST_NOISE && *gap < LONGEST).collect())
}

/// Evenly chosen ones of sorted values.
fn tried(sorted: &[f64]) -> impl Iterator<Item = f64> {
    let step = sorted.len().div_ceil(TRIED).max(1);
    sorted.iter().copied().step_by(step)
}

/// Every starter waits for a tick of a clock that never stops.
fn periodic(starters: &[Starter]) -> Option<Fit> {
    let gaps = released_after(starters);
    let released: Vec<f64> = starters.iter().map(|starter| starter.released).collect();
    let near = |period: f64| concentration(&released, period, 3.0 * period.max(400.0));
    let scores: Vec<(f64, f64)> =
        tried(&gaps).filter(|period| *period > 1.0).map(|period| (period, near(period))).collect();
    let best = scores.iter().map(|(_, score)| *score).fold(0.0, f64::max);
    let scores: Vec<_> = scores.into_iter().filter(|(period, _)| *period < LONGEST).collect();
    // A tick's fractions are in step with it, too: the longest of those that are is the tick.
    let guess = scores.iter().filter(|(_, score)| *score > 0.93 * best);
    let guess = guess.map(|(period, _)| *period).fold(0.0, f64::max);
    if guess <= 0.0 {
        return None;
    }
    let span = released.last()? - released.first()?;
    let period = zoom(&released, guess, span);
    // Where on the dial each release is, over time: what still turns is an error of the period.
    let turned = |period: f64, phase: f64| -> Vec<(f64, f64)> {
        let off = |at: f64| at - phase - ((at - phase) / period).round() * period;
        released
            .iter()
            .map(|at| (*at, off(*at)))
            .filter(|(_, off)| off.abs() < period / 5.0)
            .collect()
    };
    let period = period * (1.0 + slope(&turned(period, phase_of(&released, period))));
    let phase = phase_of(&released, period);
    let phase =
        phase + mode(&turned(period, phase).iter().map(|(_, off)| *off).collect::<Vec<_>>());
    // Whoever arrives in step with a tick is told of in step with it, without waiting for it: a
    // tick on the other side looks like that from here.
    let waited = starters.iter().filter(|starter| starter.wait() > 0.2 * period).count();
    if 2 * waited < starters.len() {
        return None;
    }
    let residuals: Vec<f64> =
        starters.iter().map(|starter| since_tick(starter, period, phase)).collect();
    // Chance puts one in ten there.
    let in_step = residuals.iter().filter(|off| off.abs() < 0.05 * period + LEAST_NOISE).count();
    (2 * in_step > starters.len())
        .then(|| Fit::new(Shape::Periodic { phase }, period, residuals, 2.0))
}

/// How far a release is from the nearest tick, and by how much the wait is longer than a period.
fn since_tick(starter: &Starter, period: f64, phase: f64) -> f64 {
    let turns = (starter.released - phase) / period;
    let off = (turns - turns.round()) * period;
    let too_long = (starter.wait() - period).max(0.0);
    if too_long > off.abs() { too_long } else { off }
}

/// How well releases keep step with a period: 1 if they do within every stretch of `stretch`
/// microseconds, whatever happens between stretches.
fn concentration(released: &[f64], period: f64, stretch: f64) -> f64 {
    let (mut total, mut counted) = (0.0, 0.0);
    let mut rest = released;
    while let Some(first) = rest.first() {
        let size = rest.partition_point(|at| at - first < stretch).max(1);
        let (group, after) = rest.split_at(size);
        rest = after;
        if size > 1 {
            let (x, y) = vector(group, period);
            // What chance gives as many is taken off.
            let length = (x * x + y * y - size as f64).max(0.0);
            total += length;
            counted += (size * (size - 1)) as f64;
        }
    }
    if counted < 20.0 { 0.0 } else { total / counted }
}

fn vector(released: &[f64], period: f64) -> (f64, f64) {
    let sum = |(x, y): (f64, f64), at: &f64| {
        let (sin, cos) = ((at / period).fract() * TAU).sin_cos();
        (x + cos, y + sin)
    };
    released.iter().fold((0.0, 0.0), sum)
}

fn phase_of(released: &[f64], period: f64) -> f64 {
    let (x, y) = vector(released, period);
    y.atan2(x) / TAU * period
}

/// Refines a period: stretches that double show it twice as exactly, until one covers everything.
fn zoom(released: &[f64], guess: f64, span: f64) -> f64 {
    // Nothing near is in step: it is no tick, and need not be known exactly.
    if concentration(released, guess, 3.0 * guess.max(400.0)) < 0.2 {
        return guess;
    }
    let mut period = guess;
    let mut stretch = 3.0 * guess.max(400.0);
    loop {
        // Half a turn over the stretch, to both sides.
        let reach = period * period / stretch;
        let candidate = |step: i32| period + reach * f64::from(step) / 24.0;
        let score = |period: &f64| concentration(released, *period, stretch);
        let best = (-24..=24).map(candidate).max_by(|a, b| score(a).total_cmp(&score(b)));
        period = best.unwrap_or(period);
        if stretch > span {
            return period;
        }
        stretch *= 2.0;
    }
}

/// The same, with an idle state on top.
fn with_waking(fit: &Fit, starters: &[Starter], noise: f64) -> Option<Fit> {
    let idles = sorted(starters.iter().map(|starter| starter.idle.min(1e7)).collect());
    // A few lone packets among thousands may be all that had to wake anyone.
    let shares = (1..20).map(|share| f64::from(share) / 20.0).chain([0.97, 0.98, 0.985, 0.99]);
    let best = |afters: &mut dyn Iterator<Item = f64>| -> Option<(f64, Waking, f64)> {
        let woken = afters.filter_map(|after| waking_after(after, fit, starters, noise));
        woken.min_by(|a, b| a.0.total_cmp(&b.0))
    };
    let (_, Waking { after, .. }, _) = best(&mut shares.map(|share| quantile(&idles, share)))?;
    // Each packet on the wrong side of the residency is a stray.
    let at = idles.partition_point(|idle| *idle < after);
    let step = idles.len() / 20 + 1;
    let near = &idles[at.saturating_sub(step)..(at + step).min(idles.len())];
    let (_, waking, common) = best(&mut near.iter().copied())?;
    // A delay was taken for what most starters wait for, which may be with the waking.
    let moved = if fit.shape == Shape::Delay { common } else { 0.0 };
    let pairs = starters.iter().zip(&fit.residuals);
    let left = pairs.map(|(starter, residual)| {
        residual - moved - if starter.idle > waking.after { waking.takes } else { 0.0 }
    });
    let residuals = left.collect();
    let usecs = fit.usecs + moved;
    let parameters = fit.parameters + 2.0;
    let fit = Fit { residuals, usecs, parameters, waking: Some(waking), ..fit.clone() };
    (fit.shape != Shape::Delay || usecs > 2.0 * noise).then_some(fit)
}

/// What it costs to explain residuals by a core that sleeps `after` so long, how long that takes,
/// and what those have in common that found it awake.
fn waking_after(
    after: f64,
    fit: &Fit,
    starters: &[Starter],
    noise: f64,
) -> Option<(f64, Waking, f64)> {
    if after < LEAST_RESIDENCY {
        return None;
    }
    let (mut busy, mut idle) = (Vec::new(), Vec::new());
    for (starter, residual) in starters.iter().zip(&fit.residuals) {
        if starter.idle > after { idle.push(*residual) } else { busy.push(*residual) }
    }
    if busy.len() < 10 || idle.len() < 10 {
        return None;
    }
    let common = mode(&busy);
    let takes = mode(&idle) - common;
    // A state that costs more than it rests is not entered: cpuidle's target residency is never
    // below its exit latency.
    if takes < 4.0 * noise || takes > 1.25 * after {
        return None;
    }
    let cost = loss(busy.iter().map(|residual| residual - common), noise)
        + loss(idle.iter().map(|residual| residual - common - takes), noise);
    Some((cost, Waking { after, takes }, common))
}

/// By how much a zero wait is told late as a rule: the middle of the noise over its lower edge,
/// which is what floors are.
pub(crate) fn usual_lateness(residuals: &[f64], noise: f64) -> f64 {
    let centre = mode(residuals);
    let near = residuals.iter().copied().filter(|residual| (residual - centre).abs() < 5.0 * noise);
    let near = sorted(near.collect());
    let (from, to, _) = narrowest(&near, 0.9);
    let cluster = &near[from..to];
    (centre - quantile(cluster, 0.02)).clamp(0.0, 1.5 * noise)
}
