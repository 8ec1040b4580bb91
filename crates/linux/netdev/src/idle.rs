//! Idle states: their files below `/sys`.

pub use device::idle::{Idle, IdleState};

use super::root::Root;

/// Reads how `cpus` idle. What cannot be read is left out.
pub fn read_idle(root: &Root, cpus: &[u32]) -> Idle {
    let base = "sys/devices/system/cpu/cpuidle";
    let mut idle = Idle {
        driver: root.word(&format!("{base}/current_driver")).filter(|name| name != "none"),
        governor: root.word(&format!("{base}/current_governor")),
        states: Vec::new(),
    };
    idle.governor = idle.governor.or_else(|| root.word(&format!("{base}/current_governor_ro")));
    for cpu in cpus {
        for (number, state) in states_of(root, *cpu).into_iter().enumerate() {
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

fn states_of(root: &Root, cpu: u32) -> Vec<IdleState> {
    let directory = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let names = root.list(&directory).unwrap_or_default();
    let number = |name: &String| name.strip_prefix("state")?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    let state = |number: u32| {
        let value = |name: &str| root.number(&format!("{directory}/state{number}/{name}"));
        Some(IdleState {
            name: root.word(&format!("{directory}/state{number}/name"))?,
            latency_us: value("latency")?,
            residency_us: value("residency").unwrap_or(0),
            is_disabled: value("disable").unwrap_or(0) != 0,
            entered: value("usage").unwrap_or(0),
            time_us: value("time").unwrap_or(0),
        })
    };
    numbers.into_iter().filter_map(state).collect()
}
