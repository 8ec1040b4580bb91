//! Is the trade-off gone, and where not? Latency of lone round trips, and load of the host, beside
//! 0.1 to 9 Gbit/s of bulk, in virtual time on hosts that cost what the paper's did: writes
//! `tradeoff.json` and `tradeoff.svg` into a directory, if none is named into `docs/results`.
//!
//! ```console
//! $ cargo build --release && cargo run --release --example tradeoff
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use report::panels::{Curve, Panel, Picture};
use serde_json::{Value, json};

/// Mbit/s of the bulk flow, on a cable of 10 Gbit/s. What TCP's headers take is not in them, so
/// that the cable carries no 10,000.
const RATES: [u32; 6] = [100, 300, 1_000, 3_000, 6_000, 9_000];

/// As many as a panel has colours for.
const SETTINGS: [&str; 3] = ["disabled", "delay:75", "marked:75"];

fn main() -> Result<()> {
    let directory = std::env::args_os().nth(1).map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results"),
        PathBuf::from,
    );
    let earmark = std::env::current_exe()?.with_file_name("../earmark");
    let mut comparisons = Vec::new();
    for rate in RATES {
        comparisons.push(json!({ "bulk_mbit": rate, "comparison": measure(&earmark, rate)? }));
    }
    let all = json!({ "rates": comparisons });
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    };
    write("tradeoff.json", &(serde_json::to_string_pretty(&all)? + "\n"))?;
    write("tradeoff.svg", &picture(&all).svg())
}

fn measure(earmark: &Path, rate: u32) -> Result<Value> {
    let mut bench = Command::new(earmark);
    bench.args(["bench", "mixed", "--world", "virtual", "--costs", "paper", "--json"]);
    bench.args(["--link-rate", "10000", "--rate", "1000", "--warmup", "0.05", "--duration", "0.1"]);
    bench.arg("--bulk-rate").arg(rate.to_string()).arg("--compare").arg(SETTINGS.join(","));
    let output = bench
        .output()
        .with_context(|| format!("run {}; `cargo build --release` makes it", earmark.display()))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("read what bench printed")
}

fn picture(all: &Value) -> Picture {
    let panel = |title: &str, figure: fn(&Value) -> Option<f64>| Panel {
        title: title.into(),
        curves: SETTINGS.map(|setting| curve(all, setting, figure)).into(),
    };
    Picture {
        summary:
            "Median and 99th percentile of round trips, and load of the busiest host, over the \
                  rate of a bulk flow beside them, for each setting."
                .into(),
        x_title: "bulk flow, Mbit/s, logarithmic".into(),
        has_logarithmic_x: true,
        change: None,
        panels: vec![
            panel("round trip p50, us", |result| result["latency_us"]["p50"].as_f64()),
            panel("round trip p99, us", |result| result["latency_us"]["p99"].as_f64()),
            panel("load of the busiest host, %", load),
        ],
    }
}

fn curve(all: &Value, setting: &str, figure: fn(&Value) -> Option<f64>) -> Curve {
    let points = all["rates"].as_array().into_iter().flatten().filter_map(|rate| {
        let results = rate["comparison"]["results"].as_array()?;
        let result = results.iter().find(|result| result["setting"] == setting)?;
        Some((rate["bulk_mbit"].as_f64()?, figure(result)?))
    });
    Curve { name: setting.into(), points: points.collect() }
}

fn load(result: &Value) -> Option<f64> {
    let ports = result["ports"].as_array()?.iter();
    let busy = ports.filter_map(|port| Some(100.0 * (1.0 - port["processor"]["idle"].as_f64()?)));
    busy.max_by(f64::total_cmp)
}
