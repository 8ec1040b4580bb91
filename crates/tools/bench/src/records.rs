//! What agents report: one line of JSON, read back and merged by the process that started them.

use serde::{Deserialize, Serialize};
use workload::{Counter, Record};

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

/// A counter of a record over its window, a second.
pub fn per_second(record: &Record, counter: Counter) -> f64 {
    record.counter(counter) as f64 * 1e9 / record.window_ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use base::distribution::Distribution;
    use workload::{Column, SCHEMA, Series, Timing};

    use super::*;

    #[test]
    fn record_survives_json() {
        let columns = vec![Column::Time, Column::Timing(Timing::RoundTrip)];
        let series = Series { columns, rows: vec![vec![7, 100]] };
        let latency = Distribution::exactly([[100, 1]].into_iter());
        let record = Record {
            schema: SCHEMA,
            workload: "rr-client".into(),
            window_ns: 1,
            cpu_ns: 2,
            counters: [(Counter::Transactions, 3), (Counter::BytesSent, 4)].into(),
            distributions: [(Timing::Latency, latency)].into(),
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
