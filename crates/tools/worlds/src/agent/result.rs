//! The record of a run.

use super::driver::RunTotals;
use bench::agent::AgentSpec;
use workload::{Counter, Record, Recorder};

/// What an agent has measured.
pub(super) fn record(spec: &AgentSpec, totals: RunTotals, recorder: Recorder) -> Record {
    let mut record = recorder.into_record(&spec.workload, totals.window_ns, totals.cpu_ns);
    if totals.refused > 0 {
        record.counters.insert(Counter::Refused, totals.refused);
    }
    if let Some(polled) = totals.polled {
        record.counters.insert(Counter::BusyPolled, polled);
    }
    record
}
