//! What packets of one length show, and what two lengths show together.

use crate::direction::Judged;
use crate::limits::EVERYDAY_LATENESS;
use crate::verdict::{Family, Finding, Lengths, NoHold, Place, Unclear, UnclearReason};

/// Two lengths show the same hold if it is as long, give or take this share of it, beside what both
/// intervals leave open: the way is another one for full segments.
const ALIKE: f64 = 0.1;

pub(crate) struct Part {
    pub(crate) judged: Vec<(Place, Judged)>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) excluded: Vec<NoHold>,
    pub(crate) unclear: Vec<Unclear>,
}

impl Part {
    /// The share of waits that are unexplained at a place.
    fn stray(&self, place: Place) -> Option<f64> {
        self.judged.iter().find(|(at, _)| *at == place).map(|(_, judged)| judged.stray)
    }

    /// What this and another length show: what both say is said once.
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        let both = Lengths::Both;
        merge(&mut self.findings, &mut other.findings, |one, other| {
            let is_one = is_one(one, other);
            if is_one {
                if one.family != other.family && !one.alike.contains(&other.family) {
                    one.alike.push(other.family);
                }
                one.lengths = both;
            }
            is_one
        });
        give_up_worse(&mut self, &mut other);
        merge(&mut self.excluded, &mut other.excluded, |one, other| {
            let is_one = one.place == other.place;
            if is_one {
                *one = NoHold { lengths: both, above: one.above.max(other.above), ..*one };
            }
            is_one
        });
        let shares_reason = !self.findings.is_empty() && other.findings.is_empty();
        merge(&mut self.unclear, &mut other.unclear, |one, other| {
            let is_one = one.place == other.place || (shares_reason && one.why == other.why);
            if is_one {
                one.lengths = both;
                one.below = one.below.zip(other.below).map(|(one, other)| one.max(other));
                let is_new = |why: &_| !one.why.iter().any(|it| kind(it) == kind(why));
                let more: Vec<_> = other.why.iter().copied().filter(is_new).collect();
                one.why.extend(more);
            }
            is_one
        });
        self.judged.extend(other.judged);
        self.findings.extend(other.findings);
        self.excluded.extend(other.excluded);
        self.unclear.extend(other.unclear);
        self
    }
}

/// Of two different holds at a place, one for each length, that which leaves waits unexplained is
/// given up: another hold for another length has to explain what it is found in.
fn give_up_worse(one: &mut Part, other: &mut Part) {
    let places: Vec<Place> = one.findings.iter().map(|finding| finding.place).collect();
    for place in places {
        let Some(stray) = one.stray(place).zip(other.stray(place)) else { continue };
        if !other.findings.iter().any(|finding| finding.place == place) {
            continue;
        }
        let (worse, stray) =
            if stray.0 > stray.1 { (&mut *one, stray.0) } else { (&mut *other, stray.1) };
        let unexplained =
            |finding: &mut Finding| finding.place == place && stray > EVERYDAY_LATENESS;
        let given_up = worse.findings.extract_if(.., unexplained);
        worse.unclear.extend(given_up.map(|finding| Unclear {
            place,
            lengths: finding.lengths,
            below: None,
            why: vec![UnclearReason::Noise],
        }));
    }
}

fn kind<T>(of: &T) -> core::mem::Discriminant<T> {
    core::mem::discriminant(of)
}

/// Takes those of `others` away that are `one` with some of `all`.
fn merge<T>(all: &mut [T], others: &mut Vec<T>, one: impl Fn(&mut T, &T) -> bool) {
    others.retain(|other| !all.iter_mut().any(|each| one(each, other)));
}

/// Whether two lengths show the same hold. Where they differ in the family alone, one of them has
/// been judged wrong. An adaptive one is as long as it happens to be.
fn is_one(one: &Finding, other: &Finding) -> bool {
    let (short, full) = (one.usecs, other.usecs);
    let places = one.place == other.place || [one.place, other.place].contains(&Place::Unknown);
    let apart = (short.value - full.value).abs();
    let open = (short.high - short.value) + (full.high - full.value);
    let is_adaptive = [one.family, other.family] == [Family::Adaptive; 2];
    places && (is_adaptive || apart < ALIKE * short.value + open)
}
