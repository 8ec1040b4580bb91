//! A tick: releases that keep step with a clock which never stops.

use core::f64::consts::TAU;

use crate::explanation::{Fit, MAX_HOLD, MIN_NOISE, Shape};
use crate::series::Starter;
use crate::stats::{mode, slope};

/// No tick is shorter than this, in microseconds: that is no hold.
const SHORTEST: f64 = 1.0;

/// A tick's fractions are in step with it as well as itself, give or take what a candidate is off
/// by: 7 % less are releases that stray by 4 % of a turn. In 60 cases of the model
/// no verdict is another one with 0.90 or 0.96.
const AS_WELL: f64 = 0.93;

/// Releases are compared over so many periods, and not over less than so many times this, in
/// microseconds: that is how long a dense train takes.
const PERIODS: f64 = 3.0;
const MIN_PERIOD: f64 = 400.0;

/// Fewer pairs than this are in step by chance: as few have a mean of 0.2 as often as not, which is
/// [`IN_STEP`].
const FEW_PAIRS: f64 = 20.0;

/// Releases that have nothing to do with one another have 0, those in step 1.
const IN_STEP: f64 = 0.2;

/// Half a turn is searched in so many steps: each is a hundredth of a turn or two, and the next
/// search, which doubles what is left of the error, still has it within half a turn.
const STEPS: i32 = 24;

/// Releases further from a tick than this share of a period are strays, and say nothing about its
/// length.
const NEAR_TICK: f64 = 5.0;

/// Arrivals that know nothing of a tick wait for more than this share of a period four times in
/// five; half are enough. In 60 cases of the model no verdict is another
/// one with 0.1 or 0.3.
const WAITED: f64 = 0.2;

/// A release is on a tick if it is off by no more than this share of a period, to either side:
/// chance puts one in ten there, and half have to be.
const ON_TICK: f64 = 0.05;

/// Every starter waits for a tick of a clock that never stops; `tried` are periods to try.
pub(crate) fn fit(starters: &[Starter], tried: impl Iterator<Item = f64>) -> Option<Fit> {
    let released: Vec<f64> = starters.iter().map(|starter| starter.released).collect();
    let near = |period: f64| concentration(&released, period, stretch(period));
    let scores: Vec<(f64, f64)> =
        tried.filter(|period| *period > SHORTEST).map(|period| (period, near(period))).collect();
    let best = scores.iter().map(|(_, score)| *score).fold(0.0, f64::max);
    let scores: Vec<_> = scores.into_iter().filter(|(period, _)| *period < MAX_HOLD).collect();
    // A tick's fractions are in step with it, too: the longest of those that are is the tick.
    let guess = scores.iter().filter(|(_, score)| *score > AS_WELL * best);
    let guess = guess.map(|(period, _)| *period).fold(0.0, f64::max);
    if guess <= 0.0 {
        return None;
    }
    let span = released.last()? - released.first()?;
    let (period, phase) = refine(&released, zoom(&released, guess, span));
    // What arrives in step with a tick is reported in step with it, without waiting for it: a
    // tick on the other side looks like that from here.
    let waited = starters.iter().filter(|starter| starter.wait() > WAITED * period).count();
    if 2 * waited < starters.len() {
        return None;
    }
    let residuals: Vec<f64> =
        starters.iter().map(|starter| since_tick(starter, period, phase)).collect();
    let on_tick = residuals.iter().filter(|off| off.abs() < ON_TICK * period + MIN_NOISE).count();
    (2 * on_tick > starters.len())
        .then(|| Fit::new(Shape::Periodic { phase }, period, residuals, 2.0))
}

/// Over how long releases are compared, in microseconds.
fn stretch(period: f64) -> f64 {
    PERIODS * period.max(MIN_PERIOD)
}

/// A period without what is left of its error, and its phase.
fn refine(released: &[f64], period: f64) -> (f64, f64) {
    // Where on the dial each release is, over time: what still turns is an error of the period.
    let turned = |period: f64, phase: f64| -> Vec<(f64, f64)> {
        let off = |at: f64| at - phase - ((at - phase) / period).round() * period;
        released
            .iter()
            .map(|at| (*at, off(*at)))
            .filter(|(_, off)| off.abs() < period / NEAR_TICK)
            .collect()
    };
    let period = period * (1.0 + slope(&turned(period, phase_of(released, period))));
    let phase = phase_of(released, period);
    let offs: Vec<f64> = turned(period, phase).iter().map(|(_, off)| *off).collect();
    (period, phase + mode(&offs))
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
    if counted < FEW_PAIRS { 0.0 } else { total / counted }
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
    let mut stretch = stretch(guess);
    // Nothing near is in step: it is no tick, and need not be known exactly.
    if concentration(released, guess, stretch) < IN_STEP {
        return guess;
    }
    let mut period = guess;
    loop {
        // Half a turn over the stretch, to both sides.
        let reach = period * period / stretch;
        let candidate = |step: i32| period + reach * f64::from(step) / f64::from(STEPS);
        let score = |period: &f64| concentration(released, *period, stretch);
        let best = (-STEPS..=STEPS).map(candidate).max_by(|a, b| score(a).total_cmp(&score(b)));
        period = best.unwrap_or(period);
        if stretch > span {
            return period;
        }
        stretch *= 2.0;
    }
}
