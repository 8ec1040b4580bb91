//! Figures of a result, by the names that the files use.

use std::fmt;
use std::str::FromStr;

use bench::measurement::{Measurement, OneWayDelays, Quantiles};

/// Of the peak rate, at which a server counts as saturated.
const SATURATED: f64 = 0.95;

/// Results of one setting: those of each number of clients, or one.
type Cells<'a> = &'a [&'a Measurement];

/// A figure of a result: its name in a file, and how it is read.
#[derive(Clone, Copy)]
pub struct Figure(&'static str, fn(Cells<'_>) -> Option<f64>);

/// All of them: times in microseconds, rates a second. *Before* and *after* are medians on either
/// side of a change; `receive-ns` is what the receiver was busy with, for each packet.
const ALL: [Figure; 22] = [
    Figure("min", |it| latency(it, |of| of.min)),
    Figure("p50", |it| latency(it, |of| of.p50)),
    Figure("mean", |it| latency(it, |of| of.mean)),
    Figure("max", |it| latency(it, |of| of.max)),
    Figure("half", |it| Some(it.first()?.half_round_trip_us?.p50)),
    Figure("half-mean", |it| Some(it.first()?.half_round_trip_us?.mean)),
    Figure("transactions", |it| it.first()?.transactions_per_s),
    Figure("datagrams", |it| it.first()?.datagrams_per_s),
    Figure("messages", |it| it.first()?.messages_per_s),
    Figure("interrupts", |it| it.first()?.interrupts_per_s),
    Figure("interrupts-per-message", |it| it.first()?.interrupts_per_message),
    Figure("receive-ns", receive_ns),
    Figure("peak", peak),
    Figure("saturates-at", saturates_at),
    Figure("round-trip-before", |it| one_way(it, 0, |of| of.round_trip_us)),
    Figure("round-trip-after", |it| one_way(it, 1, |of| of.round_trip_us)),
    Figure("request-before", |it| one_way(it, 0, |of| of.request_us)),
    Figure("request-after", |it| one_way(it, 1, |of| of.request_us)),
    Figure("response-before", |it| one_way(it, 0, |of| of.response_us)),
    Figure("response-after", |it| one_way(it, 1, |of| of.response_us)),
    Figure("offset-before", |it| one_way(it, 0, |of| of.offset_us)),
    Figure("offset-after", |it| one_way(it, 1, |of| of.offset_us)),
];

impl Figure {
    pub(crate) fn name(self) -> &'static str {
        self.0
    }

    pub(crate) fn value(self, cells: Cells<'_>) -> Option<f64> {
        self.1(cells)
    }
}

fn latency(cells: Cells<'_>, of: fn(&Quantiles) -> f64) -> Option<f64> {
    cells.first()?.latency_us.as_ref().map(of)
}

fn one_way(
    cells: Cells<'_>,
    half: usize,
    of: fn(&OneWayDelays) -> Option<Quantiles>,
) -> Option<f64> {
    Some(of(cells.first()?.one_way.get(half)?)?.p50)
}

/// Of the port that received most.
fn receive_ns(cells: Cells<'_>) -> Option<f64> {
    let cell = cells.first()?;
    let port = cell.ports.iter().max_by_key(|port| port.packets)?;
    let processor = port.processor?;
    let busy = processor.wakeup + processor.interrupt + processor.receive;
    let busy_ns = busy * processor.processors as f64 * cell.seconds * 1e9;
    (port.packets > 0).then(|| busy_ns / port.packets as f64)
}

/// The most answers a second, over all numbers of clients.
fn peak(cells: Cells<'_>) -> Option<f64> {
    cells.iter().filter_map(|cell| cell.transactions_per_s).max_by(f64::total_cmp)
}

/// The fewest clients that have 95 % of the peak.
fn saturates_at(cells: Cells<'_>) -> Option<f64> {
    let enough = SATURATED * peak(cells)?;
    let saturated = cells.iter().filter(|cell| cell.transactions_per_s >= Some(enough));
    saturated.filter_map(|cell| cell.clients).min().map(f64::from)
}

impl fmt::Debug for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl FromStr for Figure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        ALL.into_iter().find(|figure| figure.0 == text).ok_or_else(|| {
            format!("no figure `{text}`; there are {}", ALL.map(Self::name).join(", "))
        })
    }
}
