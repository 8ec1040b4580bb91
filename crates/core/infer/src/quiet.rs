//! A delay that begins anew with each packet: it ends when none has come for a while, or at a bound
//! after the first.
//!
//! A lone packet waits as under a delay, so what tells is which packets are released together:
//! those that come sooner after the packet before than the quiet time, however long ago the first
//! one came. That needs no floor. Where no train lasts until the bound, no packet shows what the
//! path costs alone, and the floor has all of the quiet time in it.

use crate::edge::{INTERRUPT, between};
use crate::explanation::{Fit, MAX_HOLD, Shape};
use crate::series::{AT_ONCE, Reception, Series, Starter};
use crate::stats::mode;

/// Who is reported within so many polls' steps of the packet before was released with it.
const STEPS: f64 = 2.0;

/// Pairs on each side of the quiet time that show where it is.
const MIN_EACH: usize = 20;

/// Fewer waits have no mode worth the name.
const FEW: usize = 5;

/// A packet that waits for less than this share of what silence takes was released by the bound,
/// which has to be as much longer than the quiet time: else this is a delay.
const CUT: f64 = 0.9;

/// Fewer starters that packets behind them kept waiting are no evidence that these do.
const EXTENDED: usize = 12;

/// A burst keeps a machine busy that both hosts share, and is reported at its end, too. So many
/// packets behind a starter do not, and they keep it waiting as long as the explanation says, but
/// for this share.
const FEW_BEHIND: usize = 3;
const AS_LONG: f64 = 0.25;

/// The best explanation of starters by silence, if packets behind them keep any waiting.
pub(crate) fn fit(series: &Series, starters: &[Starter]) -> Option<Fit> {
    let points = series.points.as_slice();
    let together = STEPS * (series.service() + AT_ONCE);
    let pair = |pair: &[Reception]| {
        let gap = pair[1].arrived - pair[0].arrived;
        (gap < MAX_HOLD).then_some((-gap, pair[1].released - pair[0].released < together))
    };
    let span = between(points.windows(2).filter_map(pair).collect(), MIN_EACH)?;
    let apart = -span.edge;
    let quiet = apart - INTERRUPT;
    if quiet <= 0.0 {
        return None;
    }
    // Of each starter, how long silence takes, and how many packets come until then.
    let silent: Vec<(&Starter, f64, usize)> = starters
        .iter()
        .map(|starter| {
            let (silence, behind) = silence(points, starter, apart);
            (starter, silence + quiet, behind)
        })
        .collect();
    let alone = silent.iter().filter(|(_, silent, _)| *silent <= quiet);
    let lone: Vec<f64> = alone.map(|(starter, ..)| starter.wait()).collect();
    // What the floor has of it.
    let offset = if lone.len() < FEW { return None } else { mode(&lone) - quiet };
    let waits = silent.iter().map(|(starter, silent, _)| (starter.wait() - offset, *silent));
    let cut: Vec<f64> =
        waits.filter(|(wait, silent)| *wait < CUT * silent).map(|(wait, _)| wait).collect();
    let bound = if cut.len() < FEW { f64::INFINITY } else { mode(&cut) };
    let bound = if CUT * bound > quiet { bound } else { f64::INFINITY };
    let mut residuals = Vec::with_capacity(silent.len());
    let (mut extended, mut by_few) = (0, 0);
    for (starter, silent, behind) in silent {
        let expected = silent.min(bound);
        let residual = starter.wait() - offset - expected;
        if CUT * expected > quiet {
            extended += 1;
            let is_as_long = residual.abs() < AS_LONG * expected;
            by_few += usize::from(behind <= FEW_BEHIND && is_as_long);
        }
        residuals.push(residual);
    }
    if extended < EXTENDED {
        return None;
    }
    let by_few = by_few >= EXTENDED;
    let doubt = (span.edge - span.lowest).max(span.highest - span.edge) + INTERRUPT;
    Some(Fit { doubt, ..Fit::new(Shape::Quiet { bound, by_few }, quiet, residuals, 3.0) })
}

/// How long after a starter the last packet came before the first gap as long as `apart`, and how
/// many came until then.
fn silence(points: &[Reception], starter: &Starter, apart: f64) -> (f64, usize) {
    let pairs = points[starter.at..].windows(2);
    let behind = pairs.take_while(|pair| pair[1].arrived - pair[0].arrived < apart).count();
    (points[starter.at + behind].arrived - starter.arrived, behind)
}
