//! The record of a run.

use super::driver::RunTotals;
use super::spec::AgentSpec;
use crate::records::{Counter, Record, SCHEMA};
use crate::workload::Recorder;

/// What an agent has measured.
pub(super) fn record(spec: &AgentSpec, totals: RunTotals, mut recorder: Recorder) -> Record {
    let mut counters = recorder.counters();
    if totals.refused > 0 {
        counters.insert(Counter::Refused, totals.refused);
    }
    if let Some(polled) = totals.polled {
        counters.insert(Counter::BusyPolled, polled);
    }
    Record {
        schema: SCHEMA,
        workload: spec.workload.kind().to_owned(),
        window_ns: totals.window_ns,
        cpu_ns: totals.cpu_ns,
        counters,
        distributions: recorder.distributions(),
        series: recorder.take_series(),
    }
}
