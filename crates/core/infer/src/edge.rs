//! The floor of a direction in which every packet waits: where joiners end and starters begin.
//!
//! Behind a delay no packet shows what the path costs without it: a starter waits for all of it,
//! and the last to join still queues behind those that joined before. But a packet that comes
//! before the release joins, and one that comes after it starts a delay of its own. The floor that
//! tells the two apart best is where the release is.

use crate::explanation::{Fit, MAX_HOLD};
use crate::series::{AT_ONCE, Series, Starter};

/// Positions behind a starter that are looked at in round trips, where it is not known how long a
/// packet took before it was answered; and how long that is thought to be, in microseconds, at
/// most.
const BEHIND: usize = 4;
const MAX_STEP: f64 = 1.0;

/// The floor is not off by more than this, in microseconds.
const REACH: f64 = 60.0;

/// Joiners near the edge, and starters, that show where it is: of fewer, one stray moves it.
const MIN_EACH: usize = 5;

/// What it takes from an interrupt to its poll, in microseconds: what comes meanwhile joins,
/// too, so from outside it is a part of the delay. It is a part of what an interrupt costs without
/// one.
pub(crate) const INTERRUPT: f64 = 0.5;

/// Who is reported within so many polls' steps of the packet before joined it: two packets that
/// were polled apart are at least a re-arming and an interrupt from each other.
const STEPS: f64 = 2.0;

/// A starter whose wait is shorter than this share of the delay found a timer of others running.
const WHOLE: f64 = 0.8;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Edge {
    /// How far above the real one the floor is, in microseconds.
    pub(crate) above: f64,
    /// How far the edge may be off: within that, hardly more packets are on the wrong side.
    pub(crate) doubt: f64,
}

/// Where the edge of `series` lies, if `delay` explains it. Where too few packets tell, the floor
/// stays where it is, and all that is known is between which joiners and starters the edge is.
pub(crate) fn find(series: &Series, starters: &[Starter], delay: &Fit) -> Edge {
    let came = came(series, starters, delay);
    let near = |reach: f64| came.iter().copied().filter(move |(before, _)| before.abs() < reach);
    if let Some(span) = between(near(REACH.min(delay.usecs / 2.0)).collect(), MIN_EACH) {
        let doubt = (span.edge - span.lowest).max(span.highest - span.edge);
        return Edge { above: (-span.edge - INTERRUPT).max(0.0), doubt };
    }
    let span = between(near(MAX_HOLD).collect(), 1);
    let doubt = span.map_or(MAX_HOLD, |span| span.lowest.abs().max(span.highest.abs()));
    Edge { above: 0.0, doubt }
}

/// Where the edge is, and between which moments it may be.
pub(crate) struct Span {
    pub(crate) lowest: f64,
    pub(crate) edge: f64,
    pub(crate) highest: f64,
}

/// How long before the release each packet came, by the floor that is; and whether it joined.
fn came(series: &Series, starters: &[Starter], delay: &Fit) -> Vec<(f64, bool)> {
    let (points, service) = (&series.points, series.service());
    let most = delay.frames.map_or(usize::MAX, |frames| frames as usize);
    let mut came: Vec<(f64, bool)> = Vec::new();
    for (at, starter) in starters.iter().enumerate() {
        let next = starters.get(at + 1).map_or(points.len() - 1, |next| next.at);
        for index in starter.at + 1..=next {
            let (before, point, behind) = (&points[index - 1], &points[index], index - starter.at);
            if series.is_round && behind > BEHIND {
                break;
            }
            let is_joiner = point.released - before.released < STEPS * (service + AT_ONCE);
            let release = match series.is_round {
                true => starter.released + behind as f64 * service.min(MAX_STEP),
                false => before.released + service,
            };
            // Enough for a limit are released at once, one batch behind the other. A
            // packet that found a timer of others running shows nothing.
            let tells = if is_joiner { behind < most } else { point.wait() > WHOLE * delay.usecs };
            if tells {
                came.push((release - point.arrived, is_joiner));
            }
        }
    }
    came
}

/// The edge between joiners and starters, if there are at least `min_each` of both.
pub(crate) fn between(mut came: Vec<(f64, bool)>, min_each: usize) -> Option<Span> {
    came.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    // Those below the edge should be starters, those above it joiners.
    let joiners = came.iter().filter(|(_, is_joiner)| *is_joiner).count();
    if joiners < min_each || came.len() - joiners < min_each {
        return None;
    }
    // Between each two, and how many would be on the wrong side if the edge were there.
    let mut wrong = came.len() - joiners;
    let mut gaps: Vec<(f64, f64, usize)> = Vec::new();
    let mut below = came[0].0;
    for (before, is_joiner) in came {
        gaps.push((below, before, wrong));
        wrong = if is_joiner { wrong + 1 } else { wrong - 1 };
        below = before;
    }
    let least = gaps.iter().map(|(_, _, wrong)| *wrong).min()?;
    let span = |most: usize| {
        let mut fit = gaps.iter().filter(|(_, _, wrong)| *wrong <= most);
        let (first, last) = (fit.next()?, fit.next_back());
        Some((first.0, last.unwrap_or(first).1))
    };
    let (low, high) = span(least)?;
    // Where few came about then, joiners say more: there are some that came late in every case.
    let edge = f64::midpoint(low, high).max(high - INTERRUPT);
    let (lowest, highest) = span(least + least.isqrt())?;
    Some(Span { lowest, edge, highest })
}
