//! Before and after: what a setting that changes in the middle of a run does to each half of a
//! round trip.
//!
//! A host that receives late answers late, and nothing else moves: its setting shows in the time
//! from client to server only. A clock that trusts the middle of the round trip is then off by half
//! of the difference.

use std::ops::Range;

use base::distribution::Distribution;
use nic::moderation::Moderation;
use report::numbers::signed;
use workload::{Column, Record, Series, Timing};

use crate::measurement::{OneWayDelays, OneWayMedians, Quantiles};
use crate::options::ExperimentOptions;
use crate::slice::{Part, Slice};

/// Samples this close to the change belong to neither side, in nanoseconds.
const GUARD_NS: i64 = 20_000_000;

/// Divides the samples of each round at its middle; empty if its agents kept none.
pub fn split(
    slices: &[Slice],
    before: Moderation,
    after: Moderation,
    options: &ExperimentOptions,
) -> Vec<OneWayDelays> {
    let asked = slices.iter().filter_map(|slice| slice.record(Part::Asker));
    let rounds: Vec<&Series> = asked.filter_map(|record| record.series.as_ref()).collect();
    if rounds.is_empty() {
        return Vec::new();
    }
    let (warmup, duration) = crate::experiment::timing(options);
    let change = ((warmup + duration / 2.0) * 1e9) as i64;
    let half = |setting: Moderation, span: Range<i64>| {
        delays(setting, &rounds, |series, timing| column(series, timing, &span))
    };
    vec![half(before, 0..change - GUARD_NS), half(after, change + GUARD_NS..i64::MAX)]
}

/// The halves of a run in which nothing changed; empty unless its agents measured both ways.
pub fn whole(slices: &[Slice], setting: Moderation) -> Vec<OneWayDelays> {
    let records: Vec<&Record> = slices.iter().filter_map(|s| s.record(Part::Asker)).collect();
    let whole = delays(setting, &records, |record, timing| record.distribution(timing));
    if whole.request_us.is_some() { vec![whole] } else { Vec::new() }
}

/// Sums `rounds` up, of each of which `of` returns a distribution.
fn delays<R>(
    setting: Moderation,
    rounds: &[R],
    of: impl Fn(&R, Timing) -> Distribution,
) -> OneWayDelays {
    let figure = |rounds: &[R], timing| {
        let mut all = Distribution::default();
        rounds.iter().for_each(|round| all.merge(&of(round, timing)));
        Quantiles::of(&all)
    };
    // An experiment without NTP's timestamps has a latency, and no halves.
    let round_trip = |rounds: &[R]| {
        figure(rounds, Timing::RoundTrip).or_else(|| figure(rounds, Timing::Latency))
    };
    let median = |quantiles: Option<Quantiles>| quantiles.map(|quantiles| quantiles.p50);
    let round = |round: &R| {
        let round = std::slice::from_ref(round);
        OneWayMedians {
            round_trip_us: median(round_trip(round)),
            request_us: median(figure(round, Timing::RequestHalf)),
            response_us: median(figure(round, Timing::ResponseHalf)),
            offset_us: median(figure(round, Timing::Offset)),
        }
    };
    OneWayDelays {
        setting: setting.to_string(),
        round_trip_us: round_trip(rounds),
        request_us: figure(rounds, Timing::RequestHalf),
        response_us: figure(rounds, Timing::ResponseHalf),
        offset_us: figure(rounds, Timing::Offset),
        rounds: rounds.iter().map(round).collect(),
    }
}

/// The values of a column in the rows of a time span.
fn column(series: &Series, timing: Timing, span: &Range<i64>) -> Distribution {
    let is_it = |column: &Column| *column == Column::Timing(timing);
    let Some(column) = series.columns.iter().position(is_it) else {
        return Distribution::default();
    };
    let rows = series.rows.iter().filter(|row| span.contains(&row[0]));
    Distribution::exactly(rows.map(|row| [row[column], 1]))
}

/// What the two halves say, in words.
pub fn describe(halves: &[OneWayDelays]) -> Option<String> {
    let [before, after] = halves else { return None };
    let moved = |of: fn(&OneWayDelays) -> Option<Quantiles>| Some(of(after)?.p50 - of(before)?.p50);
    let round_trip = moved(|half| half.round_trip_us)?;
    let mut text = format!(
        "From {} to {}, the round trip moved by {} us",
        before.setting,
        after.setting,
        signed(round_trip, 1)
    );
    let parts = (moved(|h| h.request_us), moved(|h| h.response_us), moved(|h| h.offset_us));
    if let (Some(request), Some(response), Some(offset)) = parts {
        text += &format!(
            ": the request half by {} us, the response half by {} us, and the offset that NTP \
             computes by {} us",
            signed(request, 1),
            signed(response, 1),
            signed(offset, 1)
        );
        let expected = (request - response) / 2.0;
        let is_half = (offset - expected).abs() <= (expected.abs() / 10.0).max(1.0);
        text += if is_half {
            ", although no clock was set: half of what one way became longer than the other."
        } else {
            "."
        };
    } else {
        text.push('.');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_difference_is_stated_only_if_it_is_one() {
        let half = |request: i64, response: i64, offset: i64| {
            let one =
                |us: i64| Quantiles::of(&Distribution::exactly([[us * 1_000, 1]].into_iter()));
            OneWayDelays {
                setting: "delay:5".into(),
                round_trip_us: one(request + response),
                request_us: one(request),
                response_us: one(response),
                offset_us: one(offset),
                rounds: Vec::new(),
            }
        };
        let text = |offset| describe(&[half(400, 20, 190), half(60, 20, offset)]).unwrap();
        assert!(text(20).ends_with("half of what one way became longer than the other."));
        assert!(text(90).ends_with("computes by -100.0 us."), "{}", text(90));
    }

    #[test]
    fn a_column_keeps_its_signs_and_its_span() {
        let series = Series {
            columns: vec![Column::Time, Column::Timing(Timing::Offset)],
            rows: vec![vec![1, -300], vec![2, 100], vec![9, 7]],
        };
        let offset = column(&series, Timing::Offset, &(0..5));
        assert_eq!((offset.count, offset.min_ns, offset.max_ns), (2, -300, 100));
        assert_eq!(column(&series, Timing::Latency, &(0..5)).count, 0);
    }
}
