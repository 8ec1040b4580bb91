//! A delay that begins anew with each packet: it ends when none has come for a while, or at a bound
//! after the first.
//!
//! A lone packet waits as under a delay, so what tells is which packets are released together:
//! those that come sooner after the packet before than the quiet time, however long ago the first
//! one came. That needs no floor. Where no train lasts until the bound, no packet shows what the
//! path costs alone, and the floor has all of the quiet time in it.

use crate::edge::{INTERRUPT, between};
use crate::explanation::{Fit, MAX_HOLD, Shape};
use crate::series::{AT_ONCE, Point, Series, Starter};
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
    let pair = |pair: &[Point]| {
        let gap = pair[1].arrived - pair[0].arrived;
        (gap < MAX_HOLD).then_some((-gap, pair[1].released - pair[0].released < together))
    };
    let span = between(points.windows(2).filter_map(pair).collect(), MIN_EACH)?;
    let apart = -span.edge;
    let quiet = apart - INTERRUPT;
    if quiet <= 0.0 {
        return None;
    }
    let silent = |starter: &Starter| silence(points, starter, apart).0 + quiet;
    let alone = |starter: &&Starter| silent(starter) <= quiet;
    let lone: Vec<f64> = starters.iter().filter(alone).map(Starter::wait).collect();
    // What the floor has of it.
    let offset = if lone.len() < FEW { return None } else { mode(&lone) - quiet };
    let cut = |starter: &&Starter| starter.wait() - offset < CUT * silent(starter);
    let cut: Vec<f64> = starters.iter().filter(cut).map(|it| it.wait() - offset).collect();
    let bound = if cut.len() < FEW { f64::INFINITY } else { mode(&cut) };
    let bound = if CUT * bound > quiet { bound } else { f64::INFINITY };
    let expected = |starter: &Starter| silent(starter).min(bound);
    let is_extended = |starter: &&Starter| CUT * expected(starter) > quiet;
    if starters.iter().filter(is_extended).count() < EXTENDED {
        return None;
    }
    let is_as_long = |starter: &&Starter| {
        let (_, behind) = silence(points, starter, apart);
        let residual = starter.wait() - offset - expected(starter);
        behind <= FEW_BEHIND && residual.abs() < AS_LONG * expected(starter)
    };
    let extended = starters.iter().filter(is_extended).filter(is_as_long).count();
    let by_few = extended >= EXTENDED;
    let residuals = starters.iter().map(|it| it.wait() - offset - expected(it)).collect();
    let doubt = (span.edge - span.lowest).max(span.highest - span.edge) + INTERRUPT;
    Some(Fit { doubt, ..Fit::new(Shape::Quiet { bound, by_few }, quiet, residuals, 3.0) })
}

/// How long after a starter the last packet came before the first gap as long as `apart`, and how
/// many came until then.
fn silence(points: &[Point], starter: &Starter, apart: f64) -> (f64, usize) {
    let pairs = points[starter.at..].windows(2);
    let behind = pairs.take_while(|pair| pair[1].arrived - pair[0].arrived < apart).count();
    (points[starter.at + behind].arrived - starter.arrived, behind)
}
