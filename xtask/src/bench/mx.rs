//! What a message costs over MX, and over TCP on the same cable.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::figure::Figure;
use crate::shell;

/// A line of the measuring program: one measurement of one turn.
#[derive(Debug, Deserialize)]
struct Line {
    turn: u32,
    what: String,
    mtu: u16,
    value: Value,
}

/// What was measured; the rest of it explains that.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Value {
    p50_ns: Option<f64>,
    megabytes_per_s: Option<f64>,
    messages_per_s: Option<f64>,
}

impl Value {
    /// The number and its unit.
    fn number(self) -> Option<(f64, &'static str)> {
        let latency = self.p50_ns.map(|nanos| (nanos / 1e3, "us one way, median of a run"));
        let bandwidth = self.megabytes_per_s.map(|rate| (rate, "MB/s"));
        latency.or(bandwidth).or(self.messages_per_s.map(|rate| (rate, "messages per second")))
    }
}

/// The unit of a measurement, and what it was in each turn.
type Runs = (&'static str, BTreeMap<u32, f64>);

/// Lets MX and TCP take turns, so often.
pub(super) fn measure(program: &Path, runs: u32) -> Result<Vec<Figure>> {
    let mut command = Command::new(program);
    let output = shell::output(command.arg(runs.to_string()))?;
    figures(&output).with_context(|| format!("reading what `{}` said", shell::line(&command)))
}

/// A figure of each measurement, and of each ratio of MX to TCP within a turn.
fn figures(output: &str) -> Result<Vec<Figure>> {
    // In the order in which they were measured.
    let mut order = Vec::new();
    let mut runs: BTreeMap<(String, u16), Runs> = BTreeMap::new();
    for text in output.lines() {
        let line: Line = serde_json::from_str(text).with_context(|| text.to_owned())?;
        let (number, unit) = line.value.number().with_context(|| format!("no figure in {text}"))?;
        let key = (line.what, line.mtu);
        if !order.contains(&key) {
            order.push(key.clone());
        }
        runs.entry(key).or_insert_with(|| (unit, BTreeMap::new())).1.insert(line.turn, number);
    }
    let mut figures = Vec::new();
    for (what, mtu) in order {
        let (unit, ours) = &runs[&(what.clone(), mtu)];
        let name = format!("MX messages: {what}, MTU {mtu}");
        figures.push(Figure::new(name, unit, ours.values().copied().collect()));
        let Some(kind) = what.strip_prefix("tcp ") else { continue };
        let Some((_, mx)) = runs.get(&(format!("mx {kind}"), mtu)) else { continue };
        let ratios =
            mx.iter().filter_map(|(turn, mx)| Some(mx / ours.get(turn)?)).collect::<Vec<_>>();
        if !ratios.is_empty() {
            let name = format!("MX messages: mx {kind} to tcp {kind}, MTU {mtu}");
            figures.push(Figure::new(name, "ratio", ratios));
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_turns() {
        let output = r#"{"turn":0,"what":"mx spin","mtu":1500,"value":{"p50_ns":1000,"p99_ns":9}}
{"turn":0,"what":"tcp spin","mtu":1500,"value":{"p50_ns":2000,"p99_ns":9}}
{"turn":1,"what":"mx spin","mtu":1500,"value":{"p50_ns":4000,"p99_ns":9}}
{"turn":1,"what":"tcp spin","mtu":1500,"value":{"p50_ns":4000,"p99_ns":9}}
{"turn":1,"what":"virtio rate","mtu":1500,"value":{"messages_per_s":7.5}}"#;
        let figures = figures(output).unwrap();
        let reported: Vec<_> =
            figures.iter().map(|it| (&*it.name, it.unit, it.runs, it.median)).collect();
        let latency = "us one way, median of a run";
        assert_eq!(
            reported,
            [
                ("MX messages: mx spin, MTU 1500", latency, 2, 2.5),
                ("MX messages: tcp spin, MTU 1500", latency, 2, 3.0),
                ("MX messages: mx spin to tcp spin, MTU 1500", "ratio", 2, 0.75),
                ("MX messages: virtio rate, MTU 1500", "messages per second", 1, 7.5),
            ]
        );
    }

    #[test]
    fn nonsense_is_an_error() {
        for said in ["nonsense", r#"{"turn":0,"what":"a","mtu":1500,"value":{}}"#] {
            assert!(figures(said).is_err(), "{said}");
        }
        assert_eq!(figures("").unwrap(), []);
    }
}
