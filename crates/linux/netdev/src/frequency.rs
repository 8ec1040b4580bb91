//! Frequencies of processors: their files below `/sys`.

pub use device::frequency::Frequency;

use super::root::Root;

/// Reads how the frequencies of `cpus` are chosen. What cannot be read is left out.
pub fn read_frequency(root: &Root, cpus: &[u32]) -> Frequency {
    let file = |cpu: &u32, name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
    let words = |name: &str| cpus.iter().filter_map(|cpu| root.word(&file(cpu, name))).collect();
    let numbers =
        |name: &'static str| cpus.iter().filter_map(move |cpu| root.number(&file(cpu, name)));
    Frequency {
        drivers: words("scaling_driver"),
        governors: words("scaling_governor"),
        preferences: words("energy_performance_preference"),
        min_khz: numbers("scaling_min_freq").min(),
        max_khz: numbers("scaling_max_freq").max(),
    }
}

/// The processors that are online; processor 0 if that cannot be read.
pub fn online_cpus(root: &Root) -> Vec<u32> {
    let text = root.word("sys/devices/system/cpu/online");
    let cpus = text.and_then(|text| device::cpus::parse_list(&text)).unwrap_or_default();
    if cpus.is_empty() { vec![0] } else { cpus }
}
