//! Whose hold it is, where only round trips are known: by silent packets.
//!
//! A packet that nobody answers is seen by the far NIC alone. Sent `s` before a probe it has
//! started the far delay `D`, so the probe waits for `D - s` only; or it has taken the interrupt of
//! a far throttle, so the probe waits for `D - s` where it would not have waited. My own NIC's hold
//! does not know of it. A tick cares for neither, and stays on a side unknown.
//!
//! Or by *varying*: what is still there while my NIC holds nothing is the far one's.

use crate::direction::{self, Judged};
use crate::heard::Heard;
use crate::series::{Series, Way};
use crate::stats::median;
use crate::train::Purpose;
use crate::verdict::{Family, Place};

/// Gaps for holds from what an interrupt takes to more than any that is reported, in microseconds;
/// as many that each occurs three times, and between such shares of the hold that the packets are
/// told apart from one another and from the hold's end.
const MIN_GAP: f64 = 5.0;
const MAX_GAP: f64 = 2_000.0;
const GAPS: u32 = 16;
const FROM: f64 = 0.05;
const TO: f64 = 0.9;

/// The gaps between a silent packet and its probe, in nanoseconds: from 5 to 90 percent of the hold
/// that the round trips show.
pub(crate) fn gaps(heard: &[Heard]) -> Vec<u64> {
    let hold = direction::round(heard).map_or(0.0, |judged| judged.usecs.value);
    let hold = hold.clamp(MIN_GAP, MAX_GAP) * 1e3;
    let share = |at: u32| FROM + (TO - FROM) * f64::from(at) / f64::from(GAPS - 1);
    (0..GAPS).map(|at| (hold * share(at)) as u64).collect()
}

/// The same hold is as long, give or take this share of it, and the noise of both.
const ALIKE: f64 = 0.1;

/// Whose holds they are: `all` is what round trips show, `theirs` what they show while my NIC holds
/// nothing.
pub(crate) fn by_varying(all: Judged, theirs: Judged) -> Vec<(Place, Judged)> {
    let apart = (all.usecs.value - theirs.usecs.value).abs();
    let is_alike = apart < ALIKE * theirs.usecs.value + BY_NOISE * (all.noise + theirs.noise);
    match (all.family, theirs.family) {
        (Family::None, _) => vec![(Place::Nowhere, all)],
        // What would have hidden it must be excluded, or it may still be there.
        (_, Family::None) => match theirs.excluded() {
            Some(bound) if bound < all.usecs.value => {
                vec![(Place::Mine, all), (Place::Theirs, theirs)]
            }
            _ => vec![(Place::Unknown, all)],
        },
        // An adaptive one is as long as it happens to be.
        (Family::Adaptive, Family::Adaptive) => vec![(Place::Theirs, all)],
        (one, other) if one == other && is_alike => vec![(Place::Theirs, all)],
        _ => vec![(Place::Theirs, theirs), (Place::Mine, all)],
    }
}

/// How far two holds may be apart by noise, in standard deviations of both.
const BY_NOISE: f64 = 3.0;

/// A side is clear if the other leaves more unexplained by so many standard deviations of the
/// noise, or, where noise is longer than such a share of the hold, by twice that share: with more,
/// the pairs whose gap is short would tell nothing.
const CLEARLY: f64 = 2.0;
const MAX_NOISE: f64 = 0.2;

/// Fewer primed pairs than this say nothing.
const PRIMED: usize = 8;

/// Of the pairs, so many more than half have to speak for a side: two standard deviations of
/// chance, for one error in forty.
const VOTES: f64 = 2.0;

/// What a side leaves unexplained of the waits, in the middle, as a share of the hold: a side that
/// leaves more is not the one, whatever the other leaves.
const EXPLAINED: f64 = 0.5;

/// Whose the hold is that `judged` found in the round trips.
pub(crate) fn of(heard: &[Heard], judged: &Judged) -> Place {
    let hold = judged.usecs.value;
    let (if_theirs, if_mine): (fn(f64, f64) -> f64, f64) = match judged.family {
        Family::None => return Place::Nowhere,
        Family::Delay | Family::Adaptive => (|hold, gap| hold - gap, hold),
        Family::Throttle => (|hold, gap| hold - gap, 0.0),
        Family::Periodic => return Place::Unknown,
    };
    let floor = Series::of(heard, Way::Round, 0.0).floor;
    let waking = judged.waking.map_or(0.0, |waking| waking.takes);
    let (mut theirs, mut mine) = (Vec::new(), Vec::new());
    for heard in heard.iter().filter(|heard| heard.train.purpose == Purpose::Primed) {
        let [silent, probe] = heard.probes[..] else { continue };
        let Some(received) = probe.received else { continue };
        let gap = probe.sent.saturating_sub(silent.sent) as f64 / 1e3;
        if gap > hold {
            continue;
        }
        let wait = (received.saturating_sub(probe.sent)) as f64 / 1e3 - floor;
        theirs.push((wait - if_theirs(hold, gap)).abs());
        mine.push((wait - waking - if_mine).abs().min((wait - if_mine).abs()));
    }
    let all = theirs.len();
    let for_theirs = theirs.iter().zip(&mine).filter(|(theirs, mine)| theirs < mine).count();
    // How far the votes are from halves, in standard deviations of a coin's.
    let vote = (2.0 * for_theirs as f64 - all as f64) / (all as f64).sqrt();
    let (theirs, mine) = (median(theirs), median(mine));
    let is_clear = (theirs - mine).abs() > CLEARLY * judged.noise.min(MAX_NOISE * hold);
    let explained = theirs.min(mine) < EXPLAINED * hold;
    match (all >= PRIMED && is_clear && explained, vote) {
        (true, vote) if vote >= VOTES && theirs < mine => Place::Theirs,
        (true, vote) if vote <= -VOTES && mine < theirs => Place::Mine,
        _ => Place::Unknown,
    }
}
