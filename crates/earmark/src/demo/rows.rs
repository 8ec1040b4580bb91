//! What the demo has measured.

use bench::measurement::Measurement;
use serde::Serialize;

/// The strategies, in the order of the table.
pub(super) const STRATEGIES: [&str; 8] = [
    "disabled",
    "delay:75",
    "throttle:125",
    "periodic:75",
    "delay:75+frames:16",
    "adaptive",
    "marked:75",
    "stream:75",
];

/// One strategy under the three kinds of traffic.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) setting: String,
    /// TCP round trips alone.
    pub(super) round_trips: Measurement,
    /// Bulk alone.
    pub(super) bulk: Measurement,
    /// Both at once.
    pub(super) both: Measurement,
}

/// What the demo found; `--json` writes it.
#[derive(Debug, Serialize)]
pub(super) struct Demo {
    pub(super) rows: Vec<Row>,
    pub(super) story: String,
}
