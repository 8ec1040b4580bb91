//! What is known beside the stages, and what follows for the far side. Pure.
//!
//! Between the moment a packet is given to our NIC and the moment our NIC announces the answer,
//! no event of this host says what happens. But requests that have something left out do
//! ([`super::traffic`]): what a handshake does not take, the far program takes; what is quicker
//! back to back was asleep; answers to a pair that come together were held together.

use base::quantiles::{Quantiles, nearest_rank};
use schemars::JsonSchema;
use serde::Serialize;

use super::traffic::{Pair, RequestKind, RequestRecord};

/// What is known of the hold of our own NIC.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OwnHold {
    Counted {
        hold_us: Quantiles,
        lab: String,
    },
    /// The NIC's stamps show it, with a microsecond or two of DMA and interrupt in it.
    Stamped {
        hold_us: Quantiles,
    },
    /// The driver reports how long the NIC is to wait, which it may do or not.
    Set {
        /// `rx-usecs`, in microseconds.
        rx_usecs: u32,
        /// `rx-frames`, in packets.
        rx_frames: u32,
        /// `adaptive-rx`: the driver changes the other two.
        adaptive: bool,
        /// The longest wait that follows, in microseconds; `None`: nothing says or limits it.
        up_to_us: Option<f64>,
        /// Whether it takes `rx-frames 1` beside `rx-usecs 0` to have none.
        single_frame: bool,
    },
    /// There is nothing to wait with: loopback, or a pair of virtual devices.
    None,
    Unknown,
}

/// So many requests with stamps of the NIC are enough for a median.
const FEW_STAMPS: usize = 5;

/// Of so few pairs all count.
const FEW_PAIRS: usize = 5;

impl OwnHold {
    /// The hold by stamps, where the NIC does not count: how long it `kept` answers, in ns.
    pub(crate) fn or_stamped(self, kept: &[u64]) -> Self {
        match (self, quantiles(kept.iter().copied())) {
            (Self::Set { .. } | Self::Unknown, Some(hold_us)) if kept.len() >= FEW_STAMPS => {
                Self::Stamped { hold_us }
            }
            (own, _) => own,
        }
    }

    /// Whether it is a stage of its own, or would be if there were one.
    pub(crate) fn is_separate(&self) -> bool {
        matches!(self, Self::Counted { .. } | Self::Stamped { .. })
    }

    /// How long it is, where the NIC counts it, in microseconds.
    pub(crate) fn counted_us(&self) -> Option<f64> {
        match self {
            Self::Counted { hold_us, .. } => Some(hold_us.p50),
            _ => None,
        }
    }

    /// How long it is at most, in microseconds, beyond what is a stage of its own; `None`: nothing
    /// says it.
    pub(crate) fn up_to_us(&self) -> Option<f64> {
        match self {
            Self::Counted { .. } | Self::Stamped { .. } | Self::None => Some(0.0),
            Self::Set { up_to_us, .. } => *up_to_us,
            Self::Unknown => None,
        }
    }

    /// Whether it may be as long as that.
    pub(crate) fn may_be(&self, us: f64) -> bool {
        match self {
            Self::Counted { hold_us, .. } | Self::Stamped { hold_us } => hold_us.p50 >= us,
            Self::Set { up_to_us, .. } => up_to_us.is_none_or(|up_to| up_to >= us),
            Self::None => false,
            Self::Unknown => true,
        }
    }
}

/// Medians of the program's own measurements, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct References {
    /// Spaced requests, from before the call to after it.
    pub spaced_us: f64,
    /// Of these, the time that one in ten is faster than.
    pub spaced_p10_us: f64,
    /// Those that follow each other at once.
    pub back_to_back_us: Option<f64>,
    /// A handshake, which the far kernel answers alone.
    pub handshake_us: Option<f64>,
    /// Between the requests of a pair: of those whose second one may have caught up with the first.
    pub pair_sent_us: Option<f64>,
    /// Between their answers.
    pub pair_came_us: Option<f64>,
    /// Between the requests of the quarter of the pairs that are closest: only these exclude a hold
    /// where others have the processors.
    pub close_sent_us: Option<f64>,
    /// Between the answers to these.
    pub close_came_us: Option<f64>,
}

impl References {
    pub(crate) fn of(record: &RequestRecord) -> Self {
        let kind = |kind: RequestKind| {
            let all = record.asked.iter().filter(|asked| asked.kind == kind);
            median_us(all.map(|asked| asked.to - asked.from))
        };
        let close = closest(&record.pairs);
        let spaced_us = kind(RequestKind::Spaced).unwrap_or(0.0);
        let within = within(&record.pairs, spaced_us);
        let pairs = |of: fn(&Pair) -> u64| median_us(within.iter().map(of));
        let close = |of: fn(&Pair) -> u64| median_us(close.iter().map(of));
        let spaced = record.asked.iter().filter(|asked| asked.kind == RequestKind::Spaced);
        let mut spaced: Vec<u64> = spaced.map(|asked| asked.to - asked.from).collect();
        spaced.sort_unstable();
        Self {
            spaced_us,
            spaced_p10_us: nearest_rank(&spaced, 100).unwrap_or(0) as f64 / 1e3,
            back_to_back_us: kind(RequestKind::BackToBack),
            handshake_us: median_us(record.handshakes.iter().copied()),
            pair_sent_us: pairs(|pair| pair.sent),
            pair_came_us: pairs(|pair| pair.came),
            close_sent_us: close(|pair| pair.sent),
            close_came_us: close(|pair| pair.came),
        }
    }
}

/// The pairs whose second request may have caught up with the first in a hold of about a request's
/// length: on a busy machine many are further apart. All of them, if these are too few.
fn within(pairs: &[Pair], spaced_us: f64) -> Vec<Pair> {
    let may = |pair: &&Pair| (0.3..0.8).contains(&(pair.sent as f64 / 1e3 / spaced_us.max(1e-3)));
    let within: Vec<Pair> = pairs.iter().filter(may).copied().collect();
    if within.len() < FEW_PAIRS { pairs.to_vec() } else { within }
}

/// The quarter of the pairs whose requests followed each other soonest.
fn closest(pairs: &[Pair]) -> Vec<Pair> {
    let mut close = pairs.to_vec();
    close.sort_by_key(|pair| pair.sent);
    close.truncate(pairs.len().div_ceil(4).max(FEW_PAIRS));
    close
}

fn quantiles(values: impl Iterator<Item = u64>) -> Option<Quantiles> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    Quantiles::of_sorted(&values)
}

fn median_us(values: impl Iterator<Item = u64>) -> Option<f64> {
    quantiles(values).map(|all| all.p50)
}

/// What the far side, and the wire, are found to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Far {
    /// The program takes its time for each request.
    SlowProgram,
    /// The program, or a hold of packets that are as long as requests: a handshake is short, and
    /// the pairs do not exclude such a hold.
    ProgramOrHold,
    /// The program is slow only after a pause.
    SleepyProgram,
    /// The machine, or something on the way, is slow only after a pause.
    SleepyMachine,
    /// A NIC waits for more packets: that of the far side.
    #[serde(rename = "far-hold")]
    RemoteHold,
    /// A NIC waits for more packets: ours or that of the far side.
    SomeHold,
    /// Nothing of these: the way is as long as that.
    Way,
    /// The way, or a hold of the far side: the pairs do not show which.
    WayOrHold,
    Unknown,
}

/// How much faster, in microseconds, something has to be to count: less is the noise of schedulers.
const NOTABLE: f64 = 25.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Times {
    /// From our NIC until the interrupt for the answer, typically.
    pub far_us: f64,
    pub far_busy_us: Option<f64>,
    /// The least round trip that TCP has seen, which the far kernels need alone, in microseconds.
    pub least_rtt_us: Option<f64>,
    /// From there until the program has the answer.
    pub own_in_us: f64,
}

/// Whether the answers to a pair came together although the requests were apart. A hold makes them,
/// if it is longer than the gap; then it is a good part of the far time, and the gap is shorter
/// than that. Of the gap, our own wake-up for the first answer is no part.
fn caught_up(sent: f64, came: f64, far: f64) -> bool {
    came < 0.4 * sent && 0.25 * far < sent && sent < 0.9 * far
}

/// Whether a pair shows that no hold is as much as half of the far time: its second request was too
/// late for a shorter hold alone, and its answers came apart.
fn shows_no_hold(sent: f64, own_in: f64, came: f64, far: f64) -> bool {
    sent <= 0.5 * far && came >= 0.4 * (sent - own_in)
}

/// Finds what the far side does that takes most of the time between our NIC and
/// the answer.
pub(crate) fn far(times: Times, references: &References, own: &OwnHold) -> Far {
    let Times { far_us, far_busy_us, least_rtt_us, own_in_us } = times;
    let References { spaced_us, spaced_p10_us, handshake_us, pair_sent_us, pair_came_us, .. } =
        *references;
    let close = references.close_sent_us.zip(references.close_came_us);
    // Too few of them may have been followed; the program has measured them all.
    let by_program = references.back_to_back_us.map(|busy| spaced_us - busy);
    let saved = far_busy_us.map(|busy| far_us - busy).or(by_program).unwrap_or(0.0);
    // Less than half of it is not what takes most of the time.
    let quicker_when_busy = saved > NOTABLE && saved > 0.5 * far_us;
    if let Some(handshake) = handshake_us {
        let program = spaced_us - handshake;
        if program > NOTABLE && program > 0.4 * far_us {
            // What sleeps takes its time to wake up for every one of them; what waits for a lock or
            // for others does not.
            let is_alike = spaced_p10_us - handshake > 0.5 * program;
            let asleep = saved > NOTABLE && saved > 0.5 * program && is_alike;
            // A hold as long would bring answers together whose requests came closer than that.
            let is_no_hold = close
                .is_some_and(|(sent, came)| sent < program && came >= 0.4 * (sent - own_in_us));
            return match (asleep, is_no_hold) {
                (true, _) => Far::SleepyProgram,
                (false, true) => Far::SlowProgram,
                (false, false) => Far::ProgramOrHold,
            };
        }
    }
    if quicker_when_busy {
        return Far::SleepyMachine;
    }
    let pair = pair_sent_us.zip(pair_came_us);
    if let Some((sent, _)) = pair.filter(|(sent, came)| caught_up(sent - own_in_us, *came, far_us))
    {
        // A hold that lets the second packet of a pair catch up is longer than their gap.
        return if own.may_be(0.8 * sent) { Far::SomeHold } else { Far::RemoteHold };
    }
    // With nothing asleep either, requests take much longer than a packet of TCP may take.
    let more = far_busy_us.zip(least_rtt_us).map_or(0.0, |(busy, least)| busy - least);
    if more > NOTABLE && more > 0.4 * far_us {
        return Far::ProgramOrHold;
    }
    match close {
        Some((sent, came)) if shows_no_hold(sent, own_in_us, came, far_us) => Far::Way,
        None if handshake_us.is_none() && far_busy_us.is_none() => Far::Unknown,
        _ => Far::WayOrHold,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 60 us of wire and far kernel, 40 us of our own.
    fn plain() -> References {
        References {
            spaced_us: 100.0,
            spaced_p10_us: 98.0,
            back_to_back_us: Some(90.0),
            handshake_us: Some(92.0),
            pair_sent_us: Some(75.0),
            pair_came_us: Some(76.0),
            close_sent_us: Some(75.0),
            close_came_us: Some(76.0),
        }
    }

    fn held() -> References {
        References {
            spaced_us: 300.0,
            spaced_p10_us: 295.0,
            back_to_back_us: Some(290.0),
            handshake_us: Some(292.0),
            pair_sent_us: Some(150.0),
            pair_came_us: Some(4.0),
            close_sent_us: Some(150.0),
            close_came_us: Some(4.0),
        }
    }

    fn of_2_us() -> Quantiles {
        Quantiles { p50: 2.0, ..Quantiles::default() }
    }

    fn times(far_us: f64, far_busy_us: Option<f64>) -> Times {
        Times { far_us, far_busy_us, least_rtt_us: None, own_in_us: 20.0 }
    }

    /// What the far side is found to do, by the time beyond our NIC, the same of requests back to
    /// back, and the references.
    #[test]
    fn references_decide_or_leave_undecided() {
        let pair = |sent, came| References {
            pair_sent_us: sent,
            pair_came_us: came,
            close_sent_us: sent,
            close_came_us: came,
            ..held()
        };
        let far_apart = pair(Some(250.0), Some(250.0));
        let lost = pair(None, None);
        let one_close =
            References { close_sent_us: Some(90.0), close_came_us: Some(85.0), ..far_apart };
        let long = References {
            spaced_us: 10_040.0,
            spaced_p10_us: 10_035.0,
            handshake_us: Some(10_030.0),
            ..plain()
        };
        let apart = pair(Some(100.0), Some(90.0));
        let slow = References { spaced_us: 400.0, back_to_back_us: Some(390.0), ..plain() };
        let sleepy = References {
            spaced_us: 400.0,
            spaced_p10_us: 395.0,
            back_to_back_us: Some(95.0),
            ..plain()
        };
        let locked = References { spaced_p10_us: 130.0, ..sleepy };
        let asleep = References { spaced_us: 300.0, handshake_us: Some(295.0), ..plain() };
        // A handshake is short: a NIC may hold requests alone, by their length.
        let by_length = |of: References| References { handshake_us: Some(92.0), ..of };
        let came = |came| pair(Some(150.0), Some(came));
        let none = References { spaced_us: 300.0, ..References::default() };
        for (name, far_us, busy_us, references, expected) in [
            // A hold of 50 us is most of these 60 us, and shorter than the 75 us of the pair.
            ("pairs too far apart", 60.0, Some(55.0), plain(), Far::WayOrHold),
            (
                "together for another reason",
                60.0,
                Some(55.0),
                References { pair_came_us: Some(5.0), close_came_us: Some(5.0), ..plain() },
                Far::WayOrHold,
            ),
            ("pairs as far apart as the way", 260.0, Some(258.0), far_apart, Far::WayOrHold),
            ("lost pairs", 260.0, Some(258.0), lost, Far::WayOrHold),
            ("a long way", 10_000.0, Some(9_990.0), long, Far::Way),
            ("pairs far apart, but some", 260.0, Some(258.0), one_close, Far::Way),
            ("pairs that exclude a hold", 260.0, Some(258.0), apart, Far::Way),
            ("what a handshake does not take", 360.0, Some(352.0), slow, Far::SlowProgram),
            ("asleep without a load", 360.0, Some(58.0), sleepy, Far::SleepyProgram),
            ("at times without a load", 360.0, Some(58.0), locked, Far::SlowProgram),
            ("back to back was not traced", 360.0, None, sleepy, Far::SleepyProgram),
            ("a hold by length", 260.0, Some(258.0), by_length(held()), Far::ProgramOrHold),
            ("the same, lost", 260.0, Some(258.0), by_length(lost), Far::ProgramOrHold),
            ("the same, far apart", 260.0, Some(258.0), by_length(far_apart), Far::ProgramOrHold),
            ("no hold by length", 260.0, Some(258.0), by_length(came(150.0)), Far::SlowProgram),
            ("quicker back to back", 260.0, Some(60.0), asleep, Far::SleepyMachine),
            ("no references", 260.0, None, none, Far::Unknown),
        ] {
            let found = far(times(far_us, busy_us), &references, &OwnHold::None);
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn least_round_trip_shows_the_program_where_handshakes_are_late() {
        let late = References { handshake_us: Some(260.0), ..plain() };
        let late = References { spaced_us: 300.0, back_to_back_us: Some(250.0), ..late };
        let of = |least_rtt_us| {
            far(Times { least_rtt_us, ..times(260.0, Some(230.0)) }, &late, &OwnHold::None)
        };
        assert_eq!((of(Some(30.0)), of(Some(200.0))), (Far::ProgramOrHold, Far::Way));
    }

    #[test]
    fn answers_that_come_together_were_held() {
        assert_eq!(far(times(260.0, Some(258.0)), &held(), &OwnHold::Unknown), Far::SomeHold);
        assert_eq!(far(times(260.0, Some(258.0)), &held(), &OwnHold::None), Far::RemoteHold);
        let set = |up_to_us| OwnHold::Set {
            rx_usecs: 0,
            rx_frames: 12,
            adaptive: false,
            up_to_us,
            single_frame: true,
        };
        let off = set(Some(0.0));
        assert_eq!(far(times(260.0, Some(258.0)), &held(), &off), Far::RemoteHold);
        // A time of 0 may wait for frames.
        assert_eq!(far(times(260.0, Some(258.0)), &held(), &set(None)), Far::SomeHold);
        let counted = OwnHold::Counted { hold_us: of_2_us(), lab: "x".into() };
        assert_eq!(far(times(260.0, Some(258.0)), &held(), &counted), Far::RemoteHold);
    }

    #[test]
    fn stamps_tell_more_than_settings_and_less_than_a_count() {
        let set = OwnHold::Set {
            rx_usecs: 50,
            rx_frames: 0,
            adaptive: false,
            up_to_us: Some(50.0),
            single_frame: false,
        };
        let kept = [52_000, 51_000, 53_000, 9_000_000, 50_000];
        let OwnHold::Stamped { hold_us } = set.clone().or_stamped(&kept) else { panic!() };
        assert_eq!((hold_us.p50, hold_us.count), (52.0, 5));
        assert_eq!(set.clone().or_stamped(&kept[..3]), set);
        let counted = OwnHold::Counted { hold_us: of_2_us(), lab: "x".into() };
        assert_eq!(counted.clone().or_stamped(&kept), counted);
        // A NIC that is known to keep them no longer is not the one that holds pairs together.
        let short = OwnHold::Stamped { hold_us: of_2_us() };
        assert_eq!(far(times(260.0, Some(258.0)), &held(), &short), Far::RemoteHold);
    }

    #[test]
    fn medians_are_by_kind() {
        let asked = |kind, length: u64| super::super::traffic::RequestTimes {
            kind,
            from: 5,
            to: 5 + length,
        };
        let record = RequestRecord {
            asked: vec![
                asked(RequestKind::Spaced, 3_000),
                asked(RequestKind::Pair, 9_000),
                asked(RequestKind::BackToBack, 1_000),
            ],
            pairs: (0..40).map(|n| Pair { sent: 30_000 + n, came: 2_000 + n }).collect(),
            ..RequestRecord::default()
        };
        let references = References::of(&record);
        assert_eq!((references.spaced_us, references.back_to_back_us), (3.0, Some(1.0)));
        assert_eq!((references.handshake_us, references.pair_came_us), (None, Some(2.019)));
        // The fifth of the ten closest.
        assert_eq!(references.close_came_us, Some(2.004));
        // Those that are further apart than a request takes show no hold.
        let far_apart = (0..60).map(|n| Pair { sent: 90_000 + n, came: 90_000 });
        let close = (0..5).map(|n| Pair { sent: 1_500, came: 100 + n });
        let record = RequestRecord { pairs: far_apart.chain(close).collect(), ..record };
        let references = References::of(&record);
        assert_eq!((references.pair_sent_us, references.pair_came_us), (Some(1.5), Some(0.102)));
    }
}
