//! What agents report: one line of JSON, read back and merged by whoever started them.
//!
//! Times are distributions ([`hostside::distribution`], which says how accurate they are).

pub use hostside::distribution::{Distribution, HIGHEST_NS, Summary};
use hostside::times::Times;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of [`Record`] on the wire; raised whenever a reader must know the difference.
pub const SCHEMA: u32 = 1;

/// No times yet, of those that records keep: up to 60 s.
#[must_use]
pub fn new_times() -> Times {
    Times::up_to(HIGHEST_NS)
}

/// What one agent measured in its window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The kind of workload, as in its specification: `rr-client` and so on.
    pub workload: String,
    /// How much of the measurement window passed, in nanoseconds. Rates are counters over this.
    pub window_ns: u64,
    /// CPU time (user and system) that the agent used in the window, in nanoseconds.
    pub cpu_ns: u64,
    /// Counters by name; absent is zero.
    pub counters: BTreeMap<String, u64>,
    /// Distributions by name; absent is empty.
    pub distributions: BTreeMap<String, Distribution>,
    /// Every sample with its moment, if the specification asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

/// A line on an agent's standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Message {
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

/// Samples in the order of their time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// `t_ns` (since *go*), then the names of the values, all in nanoseconds.
    pub columns: Vec<String>,
    /// One row per sample.
    pub rows: Vec<Vec<i64>>,
}

impl Series {
    /// Adds one sample; the first one names the columns.
    pub fn push<'a>(&mut self, t_ns: u64, values: impl Iterator<Item = (&'a str, i64)>) {
        let name_columns = self.columns.is_empty();
        if name_columns {
            self.columns.push("t_ns".to_owned());
        }
        let mut row = Vec::with_capacity(5);
        row.push(t_ns as i64);
        for (name, value) in values {
            if name_columns {
                self.columns.push(name.to_owned());
            }
            row.push(value);
        }
        self.rows.push(row);
    }
}

impl Record {
    /// Adds another slice of the same run or the same workload elsewhere: windows, CPU time,
    /// counters and distributions add up, series follow one another.
    pub fn merge(&mut self, other: &Self) {
        self.window_ns += other.window_ns;
        self.cpu_ns += other.cpu_ns;
        for (name, n) in &other.counters {
            *self.counters.entry(name.clone()).or_default() += n;
        }
        for (name, distribution) in &other.distributions {
            self.distributions.entry(name.clone()).or_default().merge(distribution);
        }
        if let Some(theirs) = &other.series {
            let ours = self.series.get_or_insert_default();
            ours.columns.clone_from(&theirs.columns);
            ours.rows.extend_from_slice(&theirs.rows);
        }
    }

    /// A counter by name; 0 if nothing was counted.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or_default()
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
        let record = Record {
            schema: SCHEMA,
            workload: "rr-client".into(),
            window_ns: 1,
            cpu_ns: 2,
            counters: [("transactions".to_owned(), 3)].into(),
            distributions: [("latency".to_owned(), distribution(&[100]))].into(),
            series: None,
        };
        let line = serde_json::to_string(&Message::Record(record.clone())).unwrap();
        assert!(line.starts_with(r#"{"event":"record","schema":1"#), "{line}");
        assert_eq!(serde_json::from_str::<Message>(&line).unwrap(), Message::Record(record));
    }
}
