//! Frequencies: who chooses how fast a processor runs.
//!
//! Files and meaning: Linux, `Documentation/admin-guide/pm/cpufreq.rst`.

use std::collections::BTreeSet;

use serde::Serialize;

use super::kernel::KernelFiles;

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

/// Reads how the frequencies of `cpus` are chosen. What cannot be read is left out.
pub fn read_frequency(files: &dyn KernelFiles, cpus: &[u32]) -> Frequency {
    let file = |cpu: &u32, name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
    let words = |name: &str| cpus.iter().filter_map(|cpu| files.word(&file(cpu, name))).collect();
    let numbers =
        |name: &'static str| cpus.iter().filter_map(move |cpu| files.number(&file(cpu, name)));
    Frequency {
        drivers: words("scaling_driver"),
        governors: words("scaling_governor"),
        preferences: words("energy_performance_preference"),
        min_khz: numbers("scaling_min_freq").min(),
        max_khz: numbers("scaling_max_freq").max(),
    }
}

/// The processors that are online; processor 0 if that cannot be read.
pub fn online_cpus(files: &dyn KernelFiles) -> Vec<u32> {
    let text = files.word("sys/devices/system/cpu/online");
    let cpus = text.and_then(|text| super::cpus::parse_list(&text)).unwrap_or_default();
    if cpus.is_empty() { vec![0] } else { cpus }
}
