//! A delay that changes while it is watched: what `adaptive-rx` does.
//!
//! DIM (Linux `lib/dim/net_dim.c`) picks one of five levels every 64 interrupts, and ours and every
//! driver's differ in the values, not in the manner: for a while the delay is constant, then it is
//! another one. So runs of starters with one wait are looked for, and each change costs a
//! parameter for when and one for how much.

use crate::explanation::{Fit, MAX_HOLD, MIN_NOISE, Shape};
use crate::series::Starter;
use crate::stats::{median, mode, spread};

/// Starters that agree before a level is believed.
const RUN: usize = 12;

/// Two levels differ at least by this ratio: DIM's neighbours differ by two at least.
const RATIO: f64 = 1.4;

/// The longest level is so many times the noise, or the levels may be waves of it.
const BEYOND_NOISE: f64 = 5.0;

/// What a run costs in parameters: when it begins and how long it waits, and as much again for
/// having been looked for at every starter.
const RUN_COST: f64 = 5.0;

/// Waits within so many standard deviations of the noise, and within half of the least step between
/// two levels, are of one level.
const ALIKE: f64 = 4.0;
const HALF_STEP: f64 = (RATIO - 1.0) / 2.0;

/// At a level is who waits as long as it, give or take this share of it and so many microseconds, a
/// poll's worth. Two in five have to be: beside bulk others start the timer for most. A busy server
/// spreads its waits evenly, and one in ten would be.
const AT_LEVEL: f64 = 0.05;
const AT_LEVEL_USECS: f64 = 3.0;
const AT_LEVEL_SHARE: (usize, usize) = (2, 5);

/// Of those at the longest levels, one in so many has a joiner behind it: a ramp's packets are
/// closer together than the levels that it brings about.
const JOINED_ONE_IN: usize = 25;

/// The best explanation by levels, if there are two or more.
pub(crate) fn fit(starters: &[Starter], noise: f64) -> Option<Fit> {
    let waits: Vec<f64> = starters.iter().map(Starter::wait).collect();
    if waits.len() < 3 * RUN {
        return None;
    }
    // Neighbours mostly share a level, whatever the others explain or fail to.
    let steps: Vec<f64> = waits.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let noise = noise.min(spread(&steps)).max(MIN_NOISE);
    let levels = few(&levels(&waits, noise), &waits, noise);
    let mut runs: Vec<(f64, usize)> = Vec::new();
    for level in &levels {
        match runs.last_mut() {
            Some((last, count)) if (*last - *level).abs() < f64::EPSILON => *count += 1,
            _ => runs.push((*level, 1)),
        }
    }
    let least = runs.iter().map(|(level, _)| *level).fold(f64::INFINITY, f64::min);
    let most = runs.iter().map(|(level, _)| *level).fold(0.0, f64::max);
    if runs.len() < 2
        || most < RATIO * least.max(0.0)
        || most > MAX_HOLD
        || most < BEYOND_NOISE * noise
    {
        return None;
    }
    let residuals: Vec<f64> = waits.iter().zip(&levels).map(|(wait, level)| wait - level).collect();
    if !is_level(&levels, &residuals, most) || !is_joined(starters, &levels, most) {
        return None;
    }
    let parameters = RUN_COST * runs.len() as f64;
    Some(Fit::new(Shape::Adaptive, most, residuals, parameters))
}

/// The same with one level for all runs that are alike: a moderation has a few, and comes back to
/// them.
fn few(levels: &[f64], waits: &[f64], noise: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..levels.len()).collect();
    order.sort_by(|a, b| levels[*a].total_cmp(&levels[*b]));
    let mut few = levels.to_owned();
    let alike = |a: &usize, b: &usize| {
        levels[*b] - levels[*a] < (ALIKE * noise).max(HALF_STEP * levels[*a])
    };
    for group in order.chunk_by(alike) {
        let group_waits: Vec<f64> = group.iter().map(|at| waits[*at]).collect();
        let level = mode(&group_waits).max(0.0);
        for at in group {
            few[*at] = level;
        }
    }
    few
}

/// Whether those at the longest levels really share them, and are not just late.
fn is_level(levels: &[f64], residuals: &[f64], most: f64) -> bool {
    let long = levels.iter().zip(residuals).filter(|(level, _)| **level > most / RATIO);
    let near = long
        .clone()
        .filter(|(level, residual)| residual.abs() < AT_LEVEL * **level + AT_LEVEL_USECS);
    let (near, all) = (near.count(), long.count());
    let (part, whole) = AT_LEVEL_SHARE;
    all >= 2 * RUN && whole * near >= part * all
}

/// Whether packets joined those that waited longest, as they do where a timer runs. Behind a server
/// that is busy for longer than the level no packet comes that soon.
fn is_joined(starters: &[Starter], levels: &[f64], most: f64) -> bool {
    let long = || starters.windows(2).zip(levels).filter(|(_, level)| **level > most / RATIO);
    let joined = long().filter(|(pair, _)| pair[1].at > pair[0].at + 1).count();
    JOINED_ONE_IN * joined >= long().count()
}

/// The level in force at each starter: medians of neighbours, gathered into runs.
fn levels(waits: &[f64], noise: f64) -> Vec<f64> {
    let mut levels = Vec::with_capacity(waits.len());
    let mut from = 0;
    while from < waits.len() {
        let mut to = (from + RUN).min(waits.len());
        let level = median(waits[from..to].iter().copied());
        let same = |wait: f64| (wait - level).abs() < ALIKE * noise + HALF_STEP * level.abs();
        // A run ends where the next few no longer are of it.
        while to < waits.len() {
            let ahead = &waits[to..(to + RUN / 2).min(waits.len())];
            if ahead.iter().filter(|wait| same(**wait)).count() * 2 <= ahead.len() {
                break;
            }
            to += 1;
        }
        let level = mode(&waits[from..to]).max(0.0);
        levels.extend(core::iter::repeat_n(level, to - from));
        from = to;
    }
    levels
}
