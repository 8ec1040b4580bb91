//! What the exporter says of itself.

use std::fs;

use crate::metric::Metric;
use crate::sample::Sample;

pub(crate) fn samples() -> Vec<Sample> {
    let now = sys::clock::wall_clock_nanos() as f64 / 1e9;
    let cpu = sys::clock::process_cpu_time().as_nanos() as f64 / 1e9;
    let mut samples = vec![
        Sample::new(Metric::Build, &[env!("CARGO_PKG_VERSION")], true),
        Sample::new(Metric::CollectTime, &[], now),
        Sample::new(Metric::OwnCpu, &[], cpu),
    ];
    samples.extend(resident().map(|bytes| Sample::new(Metric::OwnMemory, &[], bytes)));
    samples
}

/// Bytes of memory in RAM: the second number of `/proc/self/statm`, in pages.
fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(sys::page::size() as u64))
}
