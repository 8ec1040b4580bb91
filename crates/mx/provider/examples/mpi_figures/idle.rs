//! Whether the machine has nothing else to do.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

const ENOUGH: f64 = 0.9;
/// How often it is looked, for a second each, before a figure is taken all the same.
const PATIENCE: u32 = 60;

/// Waits until the machine is idle; how idle it was in the last second.
pub(crate) fn wait() -> f64 {
    let mut idle = 0.0;
    for _ in 0..PATIENCE {
        let before = ticks();
        sleep(Duration::from_secs(1));
        let (after, all) = (ticks(), |(idle, busy): (u64, u64)| idle + busy);
        idle = (after.0 - before.0) as f64 / (all(after) - all(before)).max(1) as f64;
        if idle >= ENOUGH {
            break;
        }
    }
    idle
}

/// Ticks of all cores so far: idle and busy (`proc(5)`).
fn ticks() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").expect("reading /proc/stat");
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().skip(1).flat_map(str::parse).collect();
    let idle = ticks.get(3).unwrap_or(&0) + ticks.get(4).unwrap_or(&0);
    (idle, ticks.iter().take(8).sum::<u64>() - idle)
}
