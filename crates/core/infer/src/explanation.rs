//! One explanation of the starters' waits, and what it costs.

use crate::stats::mode;

/// The longest hold that is looked for, in microseconds: about as far apart as the widest pairs
/// are, which a longer one would never let go one by one.
pub(crate) const MAX_HOLD: f64 = 1_500.0;

/// The least noise that is believed, in microseconds: stamps are not better than that.
pub(crate) const MIN_NOISE: f64 = 0.05;

/// Where nearly all wait for less, in microseconds, there is nothing to explain: it is below half
/// of the shortest hold that is reported.
pub(crate) const NEXT_TO_NOTHING: f64 = 1.5;

/// What all have in common is none of noise's doing beyond so many standard deviations of it, as
/// happens to three of a thousand.
const COMMON: f64 = 3.0;

/// What a parameter costs, for each unit of the logarithm of the count. Schwarz has one half for
/// samples that know nothing of one another. Starters of one train share what disturbs them, so a
/// superfluous parameter gains more than he allows for.
const PARAMETER: f64 = 1.5;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    None,
    Delay,
    Throttle,
    Periodic {
        phase: f64,
    },
    /// Until silence, or a bound.
    Quiet {
        bound: f64,
        /// Seen where one to three packets kept another waiting, not in bursts alone.
        by_few: bool,
    },
    /// Polls after the last packets.
    Deferral {
        polls: u32,
    },
    Adaptive,
}

/// A wait that comes on top where nothing had been reported for a while: an idle state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Waking {
    /// Idle for longer than this, in microseconds.
    pub(crate) after: f64,
    /// Takes so many microseconds.
    pub(crate) takes: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Fit {
    pub(crate) shape: Shape,
    /// The hold in microseconds; of an adaptive one, the longest level.
    pub(crate) usecs: f64,
    pub(crate) frames: Option<u32>,
    pub(crate) waking: Option<Waking>,
    /// What is left of each starter's wait, without what all have in common.
    pub(crate) residuals: Vec<f64>,
    /// How many numbers were chosen to make it fit.
    pub(crate) parameters: f64,
    /// How far the hold may be off beside what noise does, in microseconds.
    pub(crate) doubt: f64,
}

impl Fit {
    pub(crate) fn new(shape: Shape, usecs: f64, residuals: Vec<f64>, parameters: f64) -> Self {
        Self { shape, usecs, frames: None, waking: None, residuals, parameters, doubt: 0.0 }
    }

    /// What it costs to explain the waits so: less is better. `noise` is that of the best
    /// explanation.
    pub(crate) fn cost(&self, noise: f64) -> f64 {
        let count = self.residuals.len().max(2) as f64;
        // Noise is never negative: what all have in common may be a little, and not a hold.
        let common = mode(&self.residuals).clamp(-noise, NEXT_TO_NOTHING.max(COMMON * noise));
        loss(self.residuals.iter().map(|residual| residual - common), noise)
            + PARAMETER * self.parameters * count.ln()
    }
}

/// The negative logarithm of a Cauchy likelihood.
pub(crate) fn loss(residuals: impl IntoIterator<Item = f64>, noise: f64) -> f64 {
    residuals.into_iter().map(|residual| (1.0 + (residual / noise).powi(2)).ln()).sum()
}
