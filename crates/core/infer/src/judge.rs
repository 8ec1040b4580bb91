//! The verdict from all directions together.

use crate::direction::{self, Judged};
use crate::lengths::Part;
use crate::measured::{Far, MeasuredTrain};
use crate::series::Way;
use crate::side;
use crate::stats::{median, quantile, sorted};
use crate::train::{Length, Purpose};
use crate::verdict::{Family, Finding, Lengths, OtherDelay, Place, Verdict};
use crate::{unclear, words};

/// A share of late packets below this is everyday noise.
const EVERYDAY: f64 = 0.05;

/// A throttle as long as a request's service is taken for it, give or take this share of it, and as
/// long as it takes to begin with a request, in microseconds.
const ALIKE: f64 = 0.1;
const BEGIN: f64 = 15.0;

/// My NIC stamps packets if it did so for all but one in so many answers: the first ones may come
/// before its stamps are on.
const UNSTAMPED_ONE_IN: usize = 10;

/// A program that takes longer than this for a request, in microseconds, in the middle or now and
/// then, is slow: an echo takes a few, and a context switch more than that.
const SLOW: f64 = 20.0;
const SLOW_NOW_AND_THEN: f64 = 200.0;

/// The first packet took longer for being the first if it took so many times as long as the longest
/// of so many others at least, and so many microseconds: an address is asked for in a round trip of
/// its own.
const FIRST_RATIO: f64 = 1.5;
const OTHERS: usize = 8;
const FIRST_USECS: f64 = 100.0;

/// Fewer round trips are multiples of some step by chance: of the least, one in ten to the power
/// of so many.
const FEW_TIMES: usize = 30;

/// What the trains show, so far.
#[must_use]
pub fn judge(heard: &[MeasuredTrain]) -> Verdict {
    judge_varied(heard, &[])
}

/// The same, where `unheld` was heard while my own NIC held nothing: that tells whose a hold is
/// where round trips do not.
#[must_use]
pub fn judge_varied(heard: &[MeasuredTrain], unheld: &[MeasuredTrain]) -> Verdict {
    let probes = || heard.iter().flat_map(|heard| &heard.probes).filter(|probe| !probe.silent);
    let stamped = probes().any(|probe| probe.far.is_some());
    let by_kernel = heard.iter().flat_map(|heard| &heard.probes).any(|probe| probe.silent);
    let or_program = !stamped && !by_kernel;
    let service = Service::of(heard);
    let of_length = |length| {
        let of = |heard: &[MeasuredTrain]| -> Vec<MeasuredTrain> {
            heard.iter().filter(|heard| heard.train.length == length).cloned().collect()
        };
        part(&of(heard), &of(unheld), length, (stamped, or_program, service))
    };
    let is_full = heard.iter().any(|heard| heard.train.length == Length::Full);
    let is_short = !is_full || heard.iter().any(|heard| heard.train.length == Length::Short);
    let (tried, Part { judged, findings, excluded, unclear }) = match (is_short, is_full) {
        (true, true) => (Lengths::Both, of_length(Length::Short).and(of_length(Length::Full))),
        (true, false) => (Lengths::Short, of_length(Length::Short)),
        (false, _) => (Lengths::Full, of_length(Length::Full)),
    };
    let mut other_delays: Vec<OtherDelay> = Vec::new();
    for delay in judged.iter().flat_map(self::other_delays) {
        // Full segments, which come behind short ones, say the same of it.
        if !other_delays.iter().any(|it| is_of_one(it, &delay)) {
            other_delays.push(delay);
        }
    }
    other_delays.extend(service.map(Service::other_delay));
    other_delays.extend(first(heard));
    let bend = |place| {
        findings
            .iter()
            // A client's packets are short.
            .find(|finding| finding.place == place && finding.lengths.covers(Length::Short))
            .map_or(0.0, |finding| finding.lone_usecs)
    };
    let mut verdict = Verdict {
        tried,
        offset_bend: (stamped && (!findings.is_empty() || unclear.is_empty()))
            .then(|| (bend(Place::Theirs) - bend(Place::Mine)) / 2.0),
        findings,
        excluded,
        unclear,
        other_delays,
        quantum: quantum(heard),
        answered: (probes().filter(|probe| probe.received.is_some()).count(), probes().count()),
        reasons: Vec::new(),
    };
    verdict.reasons = words::reasons(&verdict, &judged);
    verdict
}

/// What is heard of packets of one length; whether the far host stamps, whether a far program may
/// be in what is found, and what that takes.
fn part(
    heard: &[MeasuredTrain],
    unheld: &[MeasuredTrain],
    length: Length,
    (stamped, or_program, service): (bool, bool, Option<Service>),
) -> Part {
    let lengths = match length {
        Length::Short => Lengths::Short,
        Length::Full => Lengths::Full,
    };
    let judged = places(heard, unheld, stamped);
    let mut findings: Vec<Finding> = judged.iter().filter_map(finding).collect();
    let is_lossy = unclear::is_lossy(heard);
    for finding in &mut findings {
        finding.lengths = lengths;
        if is_lossy {
            // Packets that are not seen hide what tells families apart.
            let others = Family::HOLDS.into_iter().filter(|family| *family != finding.family);
            finding.alike = others.collect();
        }
        finding.or_program = or_program && finding.place != Place::Mine;
    }
    findings.retain(|finding| !service.is_some_and(|service| service.explains(finding)));
    let (excluded, unclear) = unclear::divide(heard, &judged, &findings, lengths);
    Part { judged, findings, excluded, unclear }
}

/// What each place shows: the sides apart where timestamps tell them apart, else the way round.
fn places(
    heard: &[MeasuredTrain],
    unheld: &[MeasuredTrain],
    stamped: bool,
) -> Vec<(Place, Judged)> {
    // The far host's are preferred: the way up to my NIC has the far program in it, and how its
    // clock drifts is less certain for that.
    let ways = match (stamped, is_stamped_by_nic(heard)) {
        (true, _) => Some([Way::There, Way::Back]),
        (false, true) => Some([Way::ToNic, Way::FromNic]),
        (false, false) => None,
    };
    if let Some(ways) = ways {
        let both = direction::both(heard, ways);
        return both.map_or_else(Vec::new, |(theirs, mine)| {
            vec![(Place::Theirs, theirs), (Place::Mine, mine)]
        });
    }
    match (direction::round(heard), direction::round(unheld)) {
        (Some(round), Some(unheld)) => side::by_varying(round, unheld),
        (Some(round), None) if round.is_supported() => vec![(side::of(heard, &round), round)],
        (Some(round), None) => vec![(Place::Nowhere, round)],
        (None, _) => Vec::new(),
    }
}

/// Whether my NIC has stamped what came: all but a few, since some NICs stamp packets of PTP only.
fn is_stamped_by_nic(heard: &[MeasuredTrain]) -> bool {
    let answers =
        || heard.iter().flat_map(|heard| &heard.probes).filter(|it| it.received.is_some());
    let (all, stamped) = (answers().count(), answers().filter(|it| it.nic.is_some()).count());
    UNSTAMPED_ONE_IN * (all - stamped) < all
}

fn finding((place, judged): &(Place, Judged)) -> Option<Finding> {
    let hold = judged.usecs.value;
    let lone_usecs = match judged.family {
        Family::None => return None,
        _ if !judged.is_supported() => return None,
        Family::Delay | Family::Quiet => hold,
        Family::Adaptive => judged.lone.clamp(0.0, hold),
        Family::Throttle | Family::Deferral => 0.0,
        Family::Periodic => hold / 2.0,
    };
    Some(Finding {
        place: *place,
        lengths: Lengths::Short,
        family: judged.family,
        usecs: judged.usecs,
        frames: judged.frames,
        bound: judged.bound,
        polls: judged.polls,
        lone_usecs,
        confidence: judged.confidence,
        alike: judged.alike.clone(),
        or_program: false,
    })
}

/// Whether both say the same of one place, if not how long it takes.
fn is_of_one(one: &OtherDelay, other: &OtherDelay) -> bool {
    match (one, other) {
        (OtherDelay::Waking { place, .. }, OtherDelay::Waking { place: other, .. })
        | (OtherDelay::Stray { place, .. }, OtherDelay::Stray { place: other, .. }) => {
            place == other
        }
        _ => false,
    }
}

fn other_delays((place, judged): &(Place, Judged)) -> Vec<OtherDelay> {
    // What is left beside a hold that the data does not bear out is borne out by nothing.
    let is_shown = judged.family == Family::None || judged.is_supported();
    let waking = judged.waking.filter(|_| is_shown).map(|waking| OtherDelay::Waking {
        place: *place,
        after: waking.after,
        takes: waking.takes,
    });
    let stray = (judged.late > EVERYDAY).then_some(OtherDelay::Stray {
        place: *place,
        share: judged.late,
        usecs: judged.late_usecs,
    });
    waking.into_iter().chain(stray).collect()
}

/// What a far program that is slow takes for a request, once it has come to it: the requests before
/// it are no part. In microseconds.
#[derive(Clone, Copy, Debug)]
struct Service {
    p5: f64,
    median: f64,
    p99: f64,
}

impl Service {
    fn of(heard: &[MeasuredTrain]) -> Option<Self> {
        let mut taken = Vec::new();
        // Answers that were asked for later say nothing about work.
        for heard in heard.iter().filter(|heard| heard.train.purpose != Purpose::Spaced) {
            let mut stamps: Vec<Far> = heard.probes.iter().filter_map(|probe| probe.far).collect();
            stamps.sort_unstable_by_key(|far| far.sent);
            let mut free = 0;
            for far in stamps {
                taken.push(far.sent.saturating_sub(far.received.max(free)) as f64 / 1e3);
                free = far.sent;
            }
        }
        let taken = sorted(taken);
        let [p5, median, p99] = [0.05, 0.5, 0.99].map(|share| quantile(&taken, share));
        (median > SLOW || p99 > SLOW_NOW_AND_THEN).then_some(Self { p5, median, p99 })
    }

    /// Whether what looks like a throttle is the program at work: on the core that receives, or
    /// sending one answer each time.
    fn explains(self, finding: &Finding) -> bool {
        let alike = (1.0 - ALIKE) * self.p5..(1.0 + ALIKE) * self.median + BEGIN;
        finding.family == Family::Throttle && alike.contains(&finding.usecs.value)
    }

    const fn other_delay(self) -> OtherDelay {
        OtherDelay::Server { median: self.median, p99: self.p99 }
    }
}

fn first(heard: &[MeasuredTrain]) -> Option<OtherDelay> {
    let lone = heard.iter().filter(|heard| heard.train.purpose == Purpose::Lone);
    let times: Vec<f64> = lone
        .filter_map(|heard| heard.probes.first())
        .filter_map(|probe| Some(probe.received?.saturating_sub(probe.sent) as f64 / 1e3))
        .collect();
    let (first, rest) = times.split_first()?;
    let usecs = first - median(rest.iter().copied());
    let most = rest.iter().copied().fold(0.0, f64::max);
    (rest.len() > OTHERS && *first > FIRST_RATIO * most && usecs > FIRST_USECS)
        .then_some(OtherDelay::First { usecs })
}

/// The coarsest step of which all round trips are multiples.
fn quantum(heard: &[MeasuredTrain]) -> Option<u64> {
    const STEPS: [u64; 12] =
        [1_000_000, 100_000, 64_000, 32_000, 16_000, 10_000, 8_000, 4_000, 2_000, 1_000, 100, 10];
    let probes = heard.iter().flat_map(|heard| &heard.probes);
    let times: Vec<u64> =
        probes.filter_map(|probe| Some(probe.received?.saturating_sub(probe.sent))).collect();
    let fits = |step: &u64| times.iter().all(|time| time % step == 0);
    if times.len() < FEW_TIMES { None } else { STEPS.into_iter().find(fits) }
}
