//! The record of a run.

use super::driver::Outcome;
use super::spec::AgentSpec;
use crate::records::{Counter, Record, SCHEMA};
use crate::workload::Recorder;

/// What an agent has measured.
pub(super) fn record(spec: &AgentSpec, outcome: Outcome, mut recorder: Recorder) -> Record {
    let mut counters = recorder.counters();
    if outcome.refused > 0 {
        counters.insert(Counter::Refused, outcome.refused);
    }
    Record {
        schema: SCHEMA,
        workload: spec.workload.kind().to_owned(),
        window_ns: outcome.window_ns,
        cpu_ns: outcome.cpu_ns,
        counters,
        distributions: recorder.distributions(),
        series: recorder.take_series(),
    }
}
