//! What agents report: one line of JSON, read back and merged by the process that started them.
//!
//! Times are distributions ([`hostside::distribution`], which says how accurate they are).

pub use hostside::distribution::{Distribution, HIGHEST_NS, MAX_COUNT};
use hostside::times::Times;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

/// No times yet, of those that records keep: up to 60 s.
pub fn new_times() -> Times {
    Times::up_to(HIGHEST_NS)
}

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

/// A line on an agent's standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum AgentMessage {
    /// Bound and listening, or connected: the agent waits for `go`.
    Ready {
        /// The address a server listens at (with the port it got), or a client's peer.
        address: String,
    },
    /// The end of a run.
    Record(Record),
    /// The agent could not go on, and exits with status 1.
    Error {
        /// What failed, on what, and what to do about it.
        message: String,
    },
}

/// The most characters of foreign text that are quoted.
const LONGEST_QUOTE: usize = 300;

impl AgentMessage {
    /// Reads a line that an agent has printed. One on another host may print anything.
    pub fn parse(line: &str) -> Result<Self, String> {
        match serde_json::from_str(line) {
            Ok(Self::Record(record)) if !record.is_sound() => {
                Err(format!("said what no agent measures: `{}`", quote(line)))
            }
            Ok(Self::Error { message }) => Ok(Self::Error { message: quote(&message) }),
            Ok(message) => Ok(message),
            Err(error) => Err(format!("said `{}`: {}", quote(line), quote(&error.to_string()))),
        }
    }
}

/// The beginning of a text.
fn quote(text: &str) -> String {
    match text.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
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
    pub fn push(&mut self, t_ns: u64, values: &[(Timing, i64)]) {
        if self.columns.is_empty() {
            let timings = values.iter().map(|&(timing, _)| Column::Timing(timing));
            self.columns = std::iter::once(Column::Time).chain(timings).collect();
        }
        let values = values.iter().map(|&(_, value)| value);
        self.rows.push(std::iter::once(t_ns as i64).chain(values).collect());
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

    /// A counter over the window.
    pub fn per_second(&self, counter: Counter) -> f64 {
        self.counter(counter) as f64 * 1e9 / self.window_ns.max(1) as f64
    }

    /// A distribution; empty if nothing was recorded.
    pub fn distribution(&self, timing: Timing) -> Distribution {
        self.distributions.get(&timing).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(values: &[u64]) -> Distribution {
        let mut times = new_times();
        values.iter().for_each(|&value| times.record(value));
        Distribution::of(&times, 1)
    }

    #[test]
    fn record_survives_json() {
        let mut series = Series::default();
        series.push(7, &[(Timing::RoundTrip, 100)]);
        let record = Record {
            schema: SCHEMA,
            workload: "rr-client".into(),
            window_ns: 1,
            cpu_ns: 2,
            counters: [(Counter::Transactions, 3), (Counter::BytesSent, 4)].into(),
            distributions: [(Timing::Latency, distribution(&[100]))].into(),
            series: Some(series),
        };
        let line = serde_json::to_string(&AgentMessage::Record(record.clone())).unwrap();
        assert!(line.starts_with(r#"{"event":"record","schema":1"#), "{line}");
        for part in [
            r#""counters":{"bytes_sent":4,"transactions":3}"#,
            r#""distributions":{"latency":"#,
            r#""columns":["t_ns","round_trip"],"rows":[[7,100]]"#,
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert_eq!(AgentMessage::parse(&line).unwrap(), AgentMessage::Record(record));
    }

    #[test]
    fn what_no_agent_says_is_refused_in_few_words() {
        let deep = "[".repeat(1_000_000);
        let record = |more: &str| {
            format!(
                r#"{{"event":"record","schema":1,"workload":"x","window_ns":1,"cpu_ns":2,"counters":{{}},{more}}}"#
            )
        };
        let distribution = |buckets: &str, count: u64| {
            record(&format!(
                r#""distributions":{{"latency":{{"count":{count},"min_ns":1,"max_ns":2,"sum_ns":3,"buckets":{buckets}}}}}"#
            ))
        };
        for line in [
            "",
            "nonsense",
            &deep,
            &format!(r#"{{"event":{deep}"#),
            &format!(r#"{{"event":"{}"}}"#, "x".repeat(1_000_000)),
            &record(r#""distributions":{},"series":{"columns":["t_ns"],"rows":[[1,2]]}"#),
            &record(r#""distributions":{}"#).replace(r#"_ns":1"#, r#"_ns":18446744073709551615"#),
            &distribution("[[1,9223372036854775807],[2,1]]", u64::MAX),
            &distribution("[[1,9223372036854775807]]", i64::MAX as u64),
            &distribution("[[1,-1]]", 1),
            &distribution("[[1]]", 1),
        ] {
            let refusal = AgentMessage::parse(line).unwrap_err();
            assert!(refusal.len() < 1_000, "{refusal}");
        }
        assert!(AgentMessage::parse(&distribution("[[1,3]]", 3)).is_ok());
        let error = format!(r#"{{"event":"error","message":"{}"}}"#, "\u{e9}".repeat(1_000_000));
        let Ok(AgentMessage::Error { message }) = AgentMessage::parse(&error) else { panic!() };
        assert_eq!(message.chars().count(), LONGEST_QUOTE + 3);
    }
}
