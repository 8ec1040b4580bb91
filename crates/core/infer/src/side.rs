//! Whose hold it is, where only round trips are known: by silent packets.
//!
//! A packet without an answer is seen by the far NIC alone. Sent `s` before a probe it has
//! started the far delay `D`, so the probe waits for `D - s` only; or it has taken the interrupt of
//! a far throttle, so the probe waits for `D - s` where it would not have waited. My own NIC's hold
//! does not know of it. A tick cares for neither, and stays on a side unknown.
//!
//! Or by *varying*: what is still there while my NIC holds nothing is the far one's.

use crate::direction::{self, Judged};
use crate::measured::MeasuredTrain;
use crate::series::{Series, Way};
use crate::stats::median;
use crate::train::Purpose;
use crate::verdict::{Family, Place};

/// Gaps for holds from what an interrupt takes to more than any that is reported, in microseconds;
/// as many that each occurs three times, and between such shares of the hold that the packets are
/// distinguished from one another and from the hold's end.
const MIN_GAP: f64 = 5.0;
const MAX_GAP: f64 = 2_000.0;
const GAPS: u32 = 16;
const FROM: f64 = 0.05;
const TO: f64 = 0.9;

/// The gaps between a silent packet and its probe, in nanoseconds: from 5 to 90 percent of the hold
/// that the round trips show.
pub(crate) fn gaps(heard: &[MeasuredTrain]) -> Vec<u64> {
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
pub(crate) fn of(heard: &[MeasuredTrain], judged: &Judged) -> Place {
    let hold = judged.usecs.value;
    let (if_theirs, if_mine): (fn(f64, f64) -> f64, f64) = match judged.family {
        Family::None => return Place::Nowhere,
        Family::Delay | Family::Adaptive => (|hold, gap| hold - gap, hold),
        Family::Throttle | Family::Deferral => (|hold, gap| hold - gap, 0.0),
        // A probe begins the far silence anew, or its own.
        Family::Periodic | Family::Quiet => return Place::Unknown,
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
        // Either way this host may have had to wake up for the answer: a side that alone might say
        // so would explain more by chance.
        let unexplained = |by: f64| (wait - by).abs().min((wait - waking - by).abs());
        theirs.push(unexplained(if_theirs(hold, gap)));
        mine.push(unexplained(if_mine));
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

#[cfg(test)]
mod tests {
    use base::time::Duration;

    use super::*;
    use crate::apart::Distances;
    use crate::explanation::Waking;
    use crate::measured::Probe;
    use crate::train::{Length, Train};
    use crate::verdict::Interval;

    const HOLD: f64 = 430.0;
    const GAP: f64 = 25.0;

    /// What round trips showed of a far delay, on a machine too busy to tell it from a throttle of
    /// one that has to wake up.
    fn throttle() -> Judged {
        Judged {
            family: Family::Throttle,
            usecs: Interval::around(HOLD, 9.0),
            frames: None,
            bound: None,
            in_bursts: false,
            polls: None,
            waking: Some(Waking { after: 360.0, takes: 296.0 }),
            confidence: 0.7,
            alike: Vec::new(),
            noise: 20.0,
            stray: 0.18,
            late: 0.18,
            late_usecs: 1_344.0,
            lone: 423.0,
            distances: Distances::of(&Series::of(&[], Way::Round, 0.0)),
        }
    }

    /// Two packets of which the second waits for so long.
    fn pair(purpose: Purpose, gap: f64, wait: f64) -> MeasuredTrain {
        let probe = |at: f64, back: Option<f64>| Probe {
            sent: (at * 1e3) as u64,
            received: back.map(|back| (back * 1e3) as u64),
            nic: None,
            far: None,
            silent: back.is_none(),
        };
        let train = Train {
            number: 0,
            purpose,
            length: Length::Short,
            quiet: Duration::ZERO,
            sends: Vec::new(),
        };
        MeasuredTrain { train, probes: vec![probe(0.0, None), probe(gap, Some(gap + wait))] }
    }

    /// Whose it is, if a probe waits so long: `wait` gets the gap as a share of the hold, and a
    /// share that has nothing to do with it; both are spread evenly.
    fn named(wait: impl Fn(f64, f64) -> f64) -> Place {
        let primed = (0..48).map(|at| {
            let (share, other) = (f64::from(at) / 48.0, f64::from(at * 7 % 48) / 48.0);
            pair(Purpose::Primed, share * HOLD, GAP + wait(share, other))
        });
        let unheld = (0..100).map(|_| pair(Purpose::Lone, 5_000.0, GAP));
        of(&primed.chain(unheld).collect::<Vec<_>>(), &throttle())
    }

    #[test]
    fn waits_that_have_nothing_to_do_with_the_gap_name_no_side() {
        assert_eq!(named(|_, even| HOLD * even), Place::Unknown);
        assert_eq!(named(|_, even| 0.8 * HOLD * even), Place::Unknown);
    }

    #[test]
    fn waits_that_the_silent_packet_shortens_are_theirs_and_others_are_mine() {
        assert_eq!(named(|share, even| HOLD * (1.0 - share) + 20.0 * even), Place::Theirs);
        assert_eq!(named(|share, even| HOLD * (1.0 - share) + 296.0 + 20.0 * even), Place::Theirs);
        assert_eq!(named(|_, even| 20.0 * even), Place::Mine);
        assert_eq!(named(|_, even| 296.0 + 20.0 * even), Place::Mine);
    }
}
