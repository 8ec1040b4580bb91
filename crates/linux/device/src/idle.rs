//! Idle states: how deep a processor sleeps, and how long it takes to come back.
//!
//! Files and meaning: Linux, `Documentation/admin-guide/pm/cpuidle.rst`.

use serde::Serialize;

use super::kernel::KernelFiles;

/// An idle state of a processor, or of several that have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IdleState {
    /// Its name, such as `C6`.
    pub name: String,
    /// How long it takes at most to come back, in microseconds, says the driver.
    pub latency_us: u64,
    /// How long it takes to be worth it, in microseconds.
    pub residency_us: u64,
    /// Whether it is forbidden.
    pub is_disabled: bool,
    /// How often it was entered.
    pub entered: u64,
    /// How long the processor was in it, in microseconds.
    pub time_us: u64,
}

/// How processors idle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Idle {
    /// The driver, such as `intel_idle`; `None` if there is none: then they wait in the
    /// shallowest.
    pub driver: Option<String>,
    /// Who chooses the state, such as `menu`.
    pub governor: Option<String>,
    /// The states, shallowest first. Counts and times are sums over processors; a state is
    /// disabled if it is so for all.
    pub states: Vec<IdleState>,
}

impl Idle {
    /// The slowest state to come back from that is allowed.
    pub fn deepest(&self) -> Option<&IdleState> {
        let allowed = self.states.iter().filter(|state| !state.is_disabled);
        allowed.max_by_key(|state| state.latency_us)
    }
}

/// Reads how `cpus` idle. What cannot be read is left out.
pub fn read_idle(files: &dyn KernelFiles, cpus: &[u32]) -> Idle {
    let base = "sys/devices/system/cpu/cpuidle";
    let mut idle = Idle {
        driver: files.word(&format!("{base}/current_driver")).filter(|name| name != "none"),
        governor: files.word(&format!("{base}/current_governor")),
        states: Vec::new(),
    };
    idle.governor = idle.governor.or_else(|| files.word(&format!("{base}/current_governor_ro")));
    for cpu in cpus {
        for (number, state) in states_of(files, *cpu).into_iter().enumerate() {
            match idle.states.get_mut(number) {
                Some(sum) => add(sum, &state),
                None => idle.states.push(state),
            }
        }
    }
    idle
}

fn add(sum: &mut IdleState, state: &IdleState) {
    // Large and small cores differ: the slower one counts.
    sum.latency_us = sum.latency_us.max(state.latency_us);
    sum.residency_us = sum.residency_us.max(state.residency_us);
    sum.is_disabled &= state.is_disabled;
    sum.entered = sum.entered.saturating_add(state.entered);
    sum.time_us = sum.time_us.saturating_add(state.time_us);
}

fn states_of(files: &dyn KernelFiles, cpu: u32) -> Vec<IdleState> {
    let directory = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let names = files.list(&directory).unwrap_or_default();
    let number = |name: &String| name.strip_prefix("state")?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    let state = |number: u32| {
        let value = |name: &str| files.number(&format!("{directory}/state{number}/{name}"));
        Some(IdleState {
            name: files.word(&format!("{directory}/state{number}/name"))?,
            latency_us: value("latency")?,
            residency_us: value("residency").unwrap_or(0),
            is_disabled: value("disable").unwrap_or(0) != 0,
            entered: value("usage").unwrap_or(0),
            time_us: value("time").unwrap_or(0),
        })
    };
    numbers.into_iter().filter_map(state).collect()
}
