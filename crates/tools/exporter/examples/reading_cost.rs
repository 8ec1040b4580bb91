//! What it costs to read the devices: CPU time for each time.
//!
//! `cargo run --release -p earmark-exporter --example reading_cost [TIMES [DEVICE...]]`;
//! docs/exporter.md has figures.

use exporter::collector::Collector;
use exporter::sample::{Format, encode};
use exporter::select::Selection;
use sys::clock::process_cpu_time;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let times: u32 = arguments.first().map_or(Ok(100), |times| times.parse())?;
    let selection = Selection::new(arguments.get(1..).unwrap_or_default(), &[])?;
    let mut collector = Collector::open(selection, |line| eprintln!("{line}"))?;
    let devices = collector.devices()?.len();
    let (mut series, mut bytes) = (0, 0);
    let start = process_cpu_time();
    for _ in 0..times {
        let samples = collector.collect()?;
        series = samples.len();
        bytes = encode(&samples, Format::OpenMetrics).len() + encode(&samples, Format::Plain).len();
    }
    let spent = (process_cpu_time().as_nanos() - start.as_nanos()) as f64 / f64::from(times);
    let (milliseconds, share) = (spent / 1e6, spent / 15e9 * 100.0);
    println!(
        "{devices} devices, {series} series, {bytes} bytes in both formats: {milliseconds:.2} ms of \
         CPU time a reading, {share:.3} % of a processor at one in 15 s"
    );
    Ok(())
}
