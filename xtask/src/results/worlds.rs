//! The live world against the virtual one: the same experiments, settings and cable in both.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::format::{list, number, spread};
use crate::shell;

/// The experiments that both worlds have and that tell a latency, each with what makes it gentle
/// enough for two cores.
const EXPERIMENTS: [(&str, &[&str]); 7] = [
    ("tcp-rr", &[]),
    ("udp-rr", &[]),
    ("ping", &[]),
    ("loaded-server", &["--clients", "2"]),
    ("memcached", &["--value-bytes", "1000"]),
    ("ntp", &["--rate", "200"]),
    ("mixed", &["--bulk-rate", "200", "--bulk-chunk", "4096"]),
];

/// One end without moderation, one with a delay, one with a throttle.
const SETTINGS: &str = "disabled,delay:75,throttle:125";

/// The cable of both.
const CABLE: [&str; 4] = ["--link-rate", "1000", "--link-latency", "20"];

/// Where the difference comes from.
const HEAD: &str = "\n## Live and virtual\n\n\
    The same experiments, settings and cable (1 Gbit/s, 20 us each way) in both worlds. In virtual\n\
    time a round trip is the wire, the holds, and what reading a clock is made to cost. The live\n\
    one has more: the time that stacks and programs compute, the waking of cores that went idle,\n\
    and holds that last longer than they should because a timer of this machine was late. The\n\
    columns of holds tell that last part; the rest of the difference is computing and waking. A\n\
    live host sometimes interrupts less, because it is still polling when the next packet comes.\n\n\
    | experiment | setting | live p50 | virtual p50 | live - virtual | live hold p50 | virtual hold p50 | \
    live timer late p50 | live interrupts/s | virtual interrupts/s |\n\
    |---|---|---|---|---|---|---|---|---|---|\n";

/// Runs both worlds and writes what they said to `path`.
pub(super) fn measure(earmark: &Path, path: &Path) -> Result<()> {
    let mut pairs = Vec::new();
    for (experiment, more) in EXPERIMENTS {
        println!("{experiment} in both worlds");
        let bench = |world: &[&str]| -> Result<Value> {
            let mut bench = Command::new(earmark);
            bench.args(["bench", experiment, "--json", "--compare", SETTINGS]);
            bench.args(CABLE).args(more).args(world);
            serde_json::from_str(&shell::output(&mut bench)?).context("reading the outcome")
        };
        let live = ["--world", "live", "--wait", "precise", "--duration", "1", "--rounds", "5"];
        let virtual_time = ["--world", "virtual", "--warmup", "0.02", "--duration", "0.2"];
        let (live, virtual_time) = (bench(&live)?, bench(&virtual_time)?);
        pairs.push(json!({ "experiment": experiment, "live": live, "virtual": virtual_time }));
    }
    fs::write(path, serde_json::to_string_pretty(&json!({ "pairs": pairs }))? + "\n")?;
    Ok(())
}

/// The page's section.
pub(super) fn page(json: &Value) -> String {
    let mut text = String::from(HEAD);
    for pair in list(json, "pairs") {
        let name = pair["experiment"].as_str().unwrap_or_default();
        let both = list(&pair["live"], "results").zip(list(&pair["virtual"], "results"));
        both.for_each(|(live, exact)| text += &row(name, live, exact));
    }
    text
}

fn row(name: &str, live: &Value, exact: &Value) -> String {
    let median = |result: &Value, of: &str| result[of]["p50"].as_f64();
    let difference = median(live, "latency_us").zip(median(exact, "latency_us"));
    let difference = difference.map_or(Value::Null, |(live, exact)| json!(live - exact));
    format!(
        "| {name} | `{}` | {} {} | {} | {} | {} | {} | {} | {} {} | {} |\n",
        live["setting"].as_str().unwrap_or_default(),
        number(&live["latency_us"]["p50"], 1),
        spread(live, "latency_p50_us"),
        number(&exact["latency_us"]["p50"], 1),
        number(&difference, 1),
        number(&live["hold_us"]["p50"], 1),
        number(&exact["hold_us"]["p50"], 1),
        number(&live["timer_overshoot_us"]["p50"], 1),
        number(&live["interrupts_per_s"], 0),
        spread(live, "interrupts_per_s"),
        number(&exact["interrupts_per_s"], 0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_becomes_a_row_with_its_difference() {
        let result = |p50: f64| {
            json!({"setting": "delay:75", "latency_us": {"p50": p50}, "hold_us": {"p50": 75.0},
                   "interrupts_per_s": 10.0, "rounds": []})
        };
        let outcome = |p50| json!({ "results": [result(p50)] });
        let pair = json!({"experiment": "ping", "live": outcome(250.0), "virtual": outcome(192.5)});
        let page = page(&json!({ "pairs": [pair] }));
        assert!(page.contains("| ping | `delay:75` | 250.0  | 192.5 | 57.5 | 75.0 |"), "{page}");
    }
}
