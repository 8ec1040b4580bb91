//! What one workload measured in its window, as data.
//!
//! Times are distributions ([`base::distribution`], which says how accurate they are).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use base::distribution::{Distribution, MAX_COUNT};
use serde::{Deserialize, Serialize};

/// A distribution of a record, in nanoseconds. Declared by name, as they stand in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// From when a request was due (closed loop: sent) to its answer.
    Latency,
    /// NTP: ((t2 - t1) + (t3 - t4)) / 2, how far the server's clock seems ahead. May be negative.
    Offset,
    /// NTP: t2 - t1, the request's way, plus how far the server's clock is ahead. May be negative.
    RequestHalf,
    /// NTP: t4 - t3, the answer's way, minus how far the server's clock is ahead. May be negative.
    ResponseHalf,
    /// NTP: (t4 - t1) - (t3 - t2), the time both packets spent on the way.
    RoundTrip,
    /// From when a request was really sent to its answer; differs from `latency` in an open loop.
    Service,
    /// MX: from when a message was handed over until its memory was free again: when its last
    /// frame left, or, if it is large, when the peer had all of it.
    Transfer,
}

impl Timing {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 7] = [
        Self::Latency,
        Self::Offset,
        Self::RequestHalf,
        Self::ResponseHalf,
        Self::RoundTrip,
        Self::Service,
        Self::Transfer,
    ];
}

/// A count of a record. Declared by name, as they stand in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Packets that this host's programs received by busy polling.
    BusyPolled,
    /// Payload bytes received.
    BytesReceived,
    /// Payload bytes handed to the transport.
    BytesSent,
    /// Datagrams that were received.
    DatagramsReceived,
    /// Datagrams or frames handed to the transport.
    DatagramsSent,
    /// Requests that the peer answered with an error.
    Errors,
    /// Requests without an answer in time, or sequence numbers that never came.
    Lost,
    /// MX: bytes of messages received.
    MessageBytes,
    /// MX: messages received.
    MessagesReceived,
    /// Memcached: gets that found nothing.
    Misses,
    /// Datagrams that came after a later one.
    OutOfOrder,
    /// Datagrams that the host of the peer refused.
    Refused,
    /// Answers that match no request: duplicates, or later than the timeout.
    Stray,
    /// Nanoseconds in which waits polled: all of each wait, up to the time for which it may.
    PollingNanos,
    /// Requests answered: by a client, answers received; by a server, answers sent.
    Transactions,
    /// Requests due in the window and still unanswered at its end.
    Unanswered,
}

/// The version of [`Record`] on the wire; raised whenever a reader must know the difference.
pub const SCHEMA: u32 = 1;

/// What one agent measured in its window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version, [`SCHEMA`].
    pub schema: u32,
    /// The kind of workload, as in its specification: `rr-client` and so on.
    pub workload: String,
    /// How much of the measurement window passed, in nanoseconds. Rates are counters over this.
    pub window_ns: u64,
    /// CPU time (user and system) that the agent used in the window, in nanoseconds.
    pub cpu_ns: u64,
    /// Counters; absent is zero.
    pub counters: BTreeMap<Counter, u64>,
    /// Distributions; absent is empty.
    pub distributions: BTreeMap<Timing, Distribution>,
    /// Every sample with its moment, if the specification asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

/// A column of a [`Series`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Column {
    /// Nanoseconds since *go*.
    #[serde(rename = "t_ns")]
    Time,
    /// A value, in nanoseconds.
    #[serde(untagged)]
    Timing(Timing),
}

/// Samples in the order of their time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// [`Column::Time`], then the values.
    pub columns: Vec<Column>,
    /// One row per sample.
    pub rows: Vec<Vec<i64>>,
}

impl Series {
    /// Adds one sample; the first one names the columns.
    pub(crate) fn push(&mut self, t_ns: u64, values: &[(Timing, i64)]) {
        if self.columns.is_empty() {
            let timings = values.iter().map(|&(timing, _)| Column::Timing(timing));
            self.columns = core::iter::once(Column::Time).chain(timings).collect();
        }
        let values = values.iter().map(|&(_, value)| value);
        self.rows.push(core::iter::once(t_ns as i64).chain(values).collect());
    }
}

impl Record {
    /// Whether an agent can have measured it: one that was read from a file, or comes from another
    /// host, may be anything. Numbers of a sound one can be added up.
    pub fn is_sound(&self) -> bool {
        let rows = self.series.as_ref().map(|series| (series.columns.len(), &series.rows));
        let mut counts = self.counters.values().chain([&self.window_ns, &self.cpu_ns]);
        self.schema == SCHEMA
            && rows.is_none_or(|(columns, rows)| rows.iter().all(|row| row.len() == columns))
            && counts.all(|count| *count <= MAX_COUNT)
            && self.distributions.values().all(Distribution::is_sound)
    }

    /// Adds another slice of the same run or the same workload elsewhere: windows, CPU time,
    /// counters and distributions add up, series follow one another.
    pub fn merge(&mut self, other: &Self) {
        self.window_ns += other.window_ns;
        self.cpu_ns += other.cpu_ns;
        for (counter, n) in &other.counters {
            *self.counters.entry(*counter).or_default() += n;
        }
        for (timing, distribution) in &other.distributions {
            self.distributions.entry(*timing).or_default().merge(distribution);
        }
        if let Some(theirs) = &other.series {
            let ours = self.series.get_or_insert_default();
            ours.columns.clone_from(&theirs.columns);
            ours.rows.extend_from_slice(&theirs.rows);
        }
    }

    /// A counter; 0 if nothing was counted.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(&counter).copied().unwrap_or_default()
    }

    /// A distribution; empty if nothing was recorded.
    pub fn distribution(&self, timing: Timing) -> Distribution {
        self.distributions.get(&timing).cloned().unwrap_or_default()
    }
}
