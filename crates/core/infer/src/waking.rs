//! An idle state on top of a hold: a core that comes back late, but only after a silence.

use crate::explanation::{Fit, Shape, Waking, loss};
use crate::series::Starter;
use crate::stats::{mode, quantile, sorted};

/// No idle state is entered after less than this, in microseconds; what begins so early is a hold.
const MIN_RESIDENCY: f64 = 5.0;

/// A silence longer than this, in microseconds, is one between two probes, or before
/// the first of all: as good as any.
const MAX_SILENCE: f64 = 1e7;

/// Silences are tried as residencies at each twentieth of them, and closer at the long end: a few
/// lone packets among thousands may be all that had to wake anyone.
const PARTS: u32 = 20;
const LONG_END: [f64; 4] = [0.97, 0.98, 0.985, 0.99];

/// Fewer on one side of a residency have no mode worth the name.
const FEW: usize = 10;

/// Waking takes so many standard deviations of the noise, or it is noise: one in ten thousand would
/// be as late by chance.
const BEYOND_NOISE: f64 = 4.0;

/// No idle state is left faster than this, in microseconds: the shortest exit latency in the tables
/// of the kernel's `intel_idle.c` is 1 us. What is shorter is a step of a clock or of a program.
const MIN_EXIT: f64 = 1.0;

/// A state that costs more than it rests is not entered: cpuidle's target residency is never below
/// its exit latency. Where one begins is only known to the nearest silence.
const MAX_OF_REST: f64 = 1.25;

/// A delay that is left below a waking has to be longer than so many standard deviations of the
/// noise: else there is none, and the waking alone costs a parameter less.
const MIN_DELAY: f64 = 2.0;

/// An explanation with an idle state on top.
pub(crate) fn fit(fit: &Fit, starters: &[Starter], noise: f64) -> Option<Fit> {
    let idles = sorted(starters.iter().map(|starter| starter.idle.min(MAX_SILENCE)).collect());
    let shares = (1..PARTS).map(|share| f64::from(share) / f64::from(PARTS)).chain(LONG_END);
    let best = |afters: &mut dyn Iterator<Item = f64>| -> Option<(f64, Waking, f64)> {
        let woken = afters.filter_map(|after| waking_after(after, fit, starters, noise));
        woken.min_by(|a, b| a.0.total_cmp(&b.0))
    };
    let (_, Waking { after, .. }, _) = best(&mut shares.map(|share| quantile(&idles, share)))?;
    // Each packet on the wrong side of the residency is a stray.
    let at = idles.partition_point(|idle| *idle < after);
    let step = idles.len() / PARTS as usize + 1;
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
    (fit.shape != Shape::Delay || usecs > MIN_DELAY * noise).then_some(fit)
}

/// What it costs to explain residuals by a core that sleeps `after` so long, how long that takes,
/// and what those have in common that found it awake.
fn waking_after(
    after: f64,
    fit: &Fit,
    starters: &[Starter],
    noise: f64,
) -> Option<(f64, Waking, f64)> {
    if after < MIN_RESIDENCY {
        return None;
    }
    let (mut busy, mut idle) = (Vec::new(), Vec::new());
    for (starter, residual) in starters.iter().zip(&fit.residuals) {
        if starter.idle > after { idle.push(*residual) } else { busy.push(*residual) }
    }
    if busy.len() < FEW || idle.len() < FEW {
        return None;
    }
    let common = mode(&busy);
    let takes = mode(&idle) - common;
    if takes < MIN_EXIT.max(BEYOND_NOISE * noise) || takes > MAX_OF_REST * after {
        return None;
    }
    let cost = loss(busy.iter().map(|residual| residual - common), noise)
        + loss(idle.iter().map(|residual| residual - common - takes), noise);
    Some((cost, Waking { after, takes }, common))
}
