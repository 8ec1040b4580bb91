//! Idle states: how deep a processor sleeps, and how long it takes to come back.
//!
//! Files and meaning: Linux, `Documentation/admin-guide/pm/cpuidle.rst`.

use serde::Serialize;

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
