//! Where no hold was found: is there none, or could the data not have shown one?

use crate::direction::Judged;
use crate::measured::{MeasuredTrain, Probe};
use crate::stats::{quantile, sorted};
use crate::verdict::{Finding, Lengths, NoHold, Place, Unclear, UnclearReason};

/// "No hold" is said where everything above this is excluded, in microseconds; else that the data
/// cannot tell. The usual plan excludes more than a poll's step takes, ten microseconds or so, on
/// a machine that is idle; and delays below this are of little use on any NIC.
const SHORT: f64 = 25.0;

/// Less than this share of answers is no chance loss, but a limit on how many are given.
const MIN_ANSWERED: f64 = 0.75;

/// A third of the packets that the usual plan sends: fewer may leave out whole kinds of trains.
const FEW: usize = 2_000;

/// Probes are as far apart as all but this share of them: a sender that is late sends some in a
/// row.
const IN_A_ROW: f64 = 0.25;

/// Divides the places without a finding into those where holds are excluded, and those where the
/// data cannot tell.
pub(crate) fn divide(
    heard: &[MeasuredTrain],
    judged: &[(Place, Judged)],
    findings: &[Finding],
    lengths: Lengths,
) -> (Vec<NoHold>, Vec<Unclear>) {
    let (mut excluded, mut unclear) = (Vec::new(), Vec::new());
    if judged.is_empty() {
        let why = reasons(heard, None);
        unclear.push(Unclear { place: Place::Nowhere, lengths, below: None, why });
    }
    for (place, judged) in judged {
        let (place, bound) = (without_hold(*place), judged.excluded());
        if findings.iter().any(|finding| finding.place == place || place == Place::Nowhere) {
            continue;
        }
        match bound {
            Some(above) if above <= SHORT => excluded.push(NoHold { place, lengths, above }),
            below => {
                let why = reasons(heard, Some(judged));
                unclear.push(Unclear { place, lengths, below, why });
            }
        }
    }
    if let ([_], [finding]) = (judged, findings) {
        // One judgement of two sides: what is shorter than its hold does not show.
        let (below, why) = (Some(finding.usecs.high), vec![UnclearReason::RoundTrips]);
        unclear.push(Unclear { place: finding.place.other(), lengths, below, why });
    }
    (excluded, unclear)
}

/// A hold that was not found has no side.
const fn without_hold(place: Place) -> Place {
    if matches!(place, Place::Unknown) { Place::Nowhere } else { place }
}

fn asked(heard: &[MeasuredTrain]) -> impl Iterator<Item = &Probe> {
    heard.iter().flat_map(|heard| &heard.probes).filter(|probe| !probe.silent)
}

/// Whether many probes were not answered; those that were came among others, unseen.
pub(crate) fn is_lossy(heard: &[MeasuredTrain]) -> bool {
    let answered = asked(heard).filter(|probe| probe.received.is_some()).count();
    (answered as f64) < MIN_ANSWERED * asked(heard).count() as f64
}

/// All that kept the data from showing a hold.
fn reasons(heard: &[MeasuredTrain], judged: Option<&Judged>) -> Vec<UnclearReason> {
    let mut why = Vec::new();
    let (all, is_lossy) = (asked(heard).count(), is_lossy(heard));
    if is_lossy {
        why.push(UnclearReason::Lost);
    }
    let usecs = spacing(heard);
    if usecs > SHORT {
        why.push(UnclearReason::Spacing { usecs });
    }
    if all < FEW {
        why.push(UnclearReason::Few { sent: all });
    }
    if why.is_empty() {
        let answers = judged.and_then(|judged| judged.distances.shortest());
        why.push(match answers.filter(|usecs| *usecs > SHORT) {
            Some(usecs) => UnclearReason::Answers { usecs },
            None => UnclearReason::Noise,
        });
    }
    why
}

/// How close most probes were to one another in their trains, in microseconds.
fn spacing(heard: &[MeasuredTrain]) -> f64 {
    let gap = |pair: &[Probe]| pair[1].sent.saturating_sub(pair[0].sent) as f64 / 1e3;
    let gaps = heard.iter().flat_map(|heard| heard.probes.windows(2).map(gap));
    quantile(&sorted(gaps.collect()), IN_A_ROW)
}
