//! Interrupts that a kernel defers: NAPI with `gro_flush_timeout` and `napi_defer_hard_irqs`.
//!
//! After a poll that found packets, the kernel leaves interrupts off and polls again each time that
//! the timeout has passed, until so many polls in a row have found nothing. So a packet after
//! silence is reported at once, and one that follows another waits for the next of these polls,
//! whose phase is that of the last packets. One such poll alone is a throttle.

use crate::edge::INTERRUPT;
use crate::explanation::{Fit, MAX_HOLD, Shape, loss};
use crate::series::{Series, Starter};
use crate::stats::{cheapest, mode, sorted};

/// Polls that find nothing are counted up to this.
const MOST: usize = 64;

/// Fewer packets that came after the first poll, or after the last, do not show how many polls
/// there are.
const MIN_SHOWING: usize = 12;

/// A packet is reported by a poll if it is off by no more than this share of the timeout: chance
/// puts one in five there. Of those that should be, so many have to be: beside packets of others,
/// which begin anew what does not show here, fewer are.
const NEAR: f64 = 0.1;
const MOSTLY: f64 = 0.6;

/// Fewer values have no mode worth the name.
const FEW: usize = 5;

/// The best explanation of starters by polls; `tried` are timeouts to try.
pub(crate) fn fit(
    series: &Series,
    starters: &[Starter],
    tried: impl Iterator<Item = f64>,
    noise: f64,
) -> Option<Fit> {
    let cost = |(usecs, polls): &(f64, usize)| {
        loss(starters.iter().map(|starter| residual(starter, *usecs, *polls)), noise)
    };
    let candidates = tried.map(|usecs| (usecs, polls(starters, usecs, noise)));
    let (usecs, count) = cheapest(candidates, cost)?;
    // Of those that waited for a later poll, each has the timeout several times as exactly.
    let timeouts = starters.iter().filter_map(|starter| {
        let poll = poll(starter, usecs).filter(|poll| *poll <= count as f64)?;
        let each = (starter.released - starter.last) / poll;
        ((each - usecs).abs() < NEAR * usecs).then_some(each)
    });
    let timeouts = sorted(timeouts.collect());
    let usecs = if timeouts.len() < FEW { usecs } else { mode(&timeouts) };
    if count < 2 || usecs > MAX_HOLD {
        return None;
    }
    let fit = |starter: &&Starter| residual(starter, usecs, count).abs() < NEAR * usecs;
    // Starters for which a throttle predicts another wait, and those that no poll holds.
    let waits_later = |starter: &&Starter| {
        let poll = poll(starter, usecs).filter(|poll| (2.0..=count as f64).contains(poll));
        let due = |poll: f64| starter.last + poll * usecs;
        // One that came just behind a release is no starter, and may have begun a throttle's gap.
        starter.idle > usecs && poll.is_some_and(|poll| due(poll) - starter.arrived > NEAR * usecs)
    };
    let comes_after = |starter: &&Starter| starter.arrived - starter.last > usecs * count as f64;
    let tells = |which: &dyn Fn(&&Starter) -> bool| {
        let all = starters.iter().filter(which).count();
        let near = starters.iter().filter(which).filter(fit).count();
        near >= MIN_SHOWING && near as f64 > MOSTLY * all as f64
    };
    if !tells(&waits_later) || !tells(&comes_after) {
        return None;
    }
    let residuals = starters.iter().map(|starter| residual(starter, usecs, count)).collect();
    let fit = Fit::new(Shape::Deferral { polls: count as u32 }, usecs, residuals, 2.0);
    // From the end of a poll to the begin of the next: what the first one took is in it, too.
    Some(Fit { doubt: INTERRUPT + series.service().max(INTERRUPT), ..fit })
}

/// The how manieth poll after the last packets is the next one when a starter comes.
fn poll(starter: &Starter, usecs: f64) -> Option<f64> {
    let poll = ((starter.arrived - starter.last) / usecs).ceil();
    (poll.is_finite() && poll >= 1.0).then_some(poll)
}

/// What is left of a starter's wait if there are so many polls.
fn residual(starter: &Starter, usecs: f64, polls: usize) -> f64 {
    let next = poll(starter, usecs).filter(|poll| *poll <= polls as f64);
    let expected = next.map_or(starter.arrived, |poll| starter.last + poll * usecs);
    starter.released - expected.max(starter.arrived)
}

fn polls(starters: &[Starter], usecs: f64, noise: f64) -> usize {
    // By how much it costs more, for each poll, to explain those who wait for it as if they came
    // after the last one.
    let mut saved = [0.0; MOST + 1];
    for starter in starters {
        let Some(poll) = poll(starter, usecs).filter(|poll| *poll <= MOST as f64) else { continue };
        let of = |polls| loss([residual(starter, usecs, polls)], noise);
        saved[poll as usize] += of(0) - of(MOST);
    }
    let mut total = 0.0;
    let sums = saved.iter().enumerate().map(|(polls, more)| {
        total += more;
        (polls, total)
    });
    sums.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(polls, _)| polls)
}
