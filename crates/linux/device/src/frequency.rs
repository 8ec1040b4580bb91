//! Frequencies: who chooses how fast a processor runs.
//!
//! Files and meaning: Linux, `Documentation/admin-guide/pm/cpufreq.rst`.

use std::collections::BTreeSet;

use serde::Serialize;

/// How processors' frequencies are chosen; several values if they differ, none if nothing chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Frequency {
    /// Drivers, such as `intel_pstate`.
    pub drivers: BTreeSet<String>,
    /// Governors, such as `powersave`.
    pub governors: BTreeSet<String>,
    /// Hints to the processor, such as `balance_performance`.
    pub preferences: BTreeSet<String>,
    /// The slowest that is allowed, in kHz.
    pub min_khz: Option<u64>,
    /// The fastest that is allowed, in kHz.
    pub max_khz: Option<u64>,
}
