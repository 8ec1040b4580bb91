//! What MPI's messages cost over Earmark and over its peers, as an example of the provider measures
//! it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::format::{list, number};
use crate::bench::environment::Environment;
use crate::shell;

/// How often each net has its turn.
const ROUNDS: &str = "5";

/// What the others are compared with, as the example calls it: between hosts, and within one.
const COMPARED: [&str; 2] = ["earmark packet+tcp", "earmark"];

const HEAD: &str = "\n## MPI\n\n\
    Open MPI's messages between two hosts joined by a veth: over Earmark, with a TCP connection\n\
    for data and without, over Open MPI's own TCP, and over libfabric's `tcp;ofi_rxm` and\n\
    `udp;ofi_rxd`, in turns. Each is the median of the rounds, with the least and the most; below\n\
    it, what Earmark (the first column) is of it, the median of the rounds. Latency is half a\n\
    round trip; bw, bibw, rate, allreduce and alltoall are what the OSU benchmarks of these names\n\
    measure (rate: osu_mbw_mr), with 64 messages at a time; random-access is\n\
    `MPIRandomAccess` of hpcc, whose result was right in every run.\n";

const WITHIN_HOST: &str = "\n## MPI within a host\n\n\
    The same of two ranks on one host: over Earmark's shared memory, where long messages are read\n\
    from the memory of the sender, and over Open MPI's own (vader), which does so, too.\n\n";

/// Measures, between hosts or within one, and writes what was seen to `path`.
pub(super) fn measure(path: &Path, within_host: bool) -> Result<()> {
    println!("MPI and its peers{}", if within_host { " within a host" } else { "" });
    let environment = Environment::read()?;
    // The example wants the provider beside it.
    let build = ["build", "--release", "--package", "earmark-provider", "--lib"];
    shell::run(&mut shell::cargo(build))?;
    let example = ["run", "--release", "--package", "earmark-provider", "--example", "mpi_figures"];
    let mut command = shell::cargo(example);
    command.args(["--", ROUNDS]).args(within_host.then_some("within-host"));
    let text = shell::output(&mut command)?;
    let mut outcome: Value = serde_json::from_str(&text).context("reading the figures")?;
    outcome["environment"] = serde_json::to_value(&environment)?;
    outcome["environment"]["text"] = environment.to_string().into();
    fs::write(path, serde_json::to_string_pretty(&outcome)? + "\n")?;
    Ok(())
}

/// The page's section.
pub(super) fn page(outcome: &Value) -> String {
    let mut text = String::from(HEAD);
    for framing in list(outcome, "framings") {
        text += if framing["offloads"] == Value::Bool(true) {
            "\nWith the offloads of a veth, which passes on up to 64 KiB of TCP or datagrams as one:\n\n"
        } else {
            "\nWithout offloads: every frame is one of Ethernet.\n\n"
        };
        text += &table(framing);
    }
    text + &origin(outcome)
}

/// The section of what was measured within a host.
pub(super) fn page_within_host(outcome: &Value) -> String {
    WITHIN_HOST.to_owned() + &table(&outcome["within_host"]) + &origin(outcome)
}

/// Where the figures come from.
fn origin(outcome: &Value) -> String {
    // Within a host there is none.
    let tcp = outcome["congestion_control"].as_str().map(|name| format!(" TCP: {name}."));
    format!(
        "\n{}; {}, {} rounds.{}\n",
        outcome["environment"]["text"].as_str().unwrap_or_default(),
        outcome["mpi"].as_str().unwrap_or_default(),
        outcome["rounds"],
        tcp.unwrap_or_default()
    )
}

/// The figures of nets that took turns.
fn table(outcome: &Value) -> String {
    let figures: Vec<&Value> = list(outcome, "figures").collect();
    let Some(nets) = figures.first().and_then(|figure| figure["values"].as_object()) else {
        return String::new();
    };
    let mut nets: Vec<&str> = nets.keys().map(String::as_str).collect();
    nets.sort_by_key(|net| !COMPARED.contains(net));
    let line = "|---".repeat(nets.len());
    let mut text = format!("| figure | {} |\n|---{line}|\n", nets.join(" | "));
    for figure in figures {
        text += &row(figure, &nets);
    }
    let idle = number(&outcome["idle_before"]["least"], 2);
    text + &format!("\nBefore each run, at least {idle} of the machine was idle.\n")
}

fn row(figure: &Value, nets: &[&str]) -> String {
    let what = figure["what"].as_str().unwrap_or_default();
    let size = match figure["bytes"].as_u64() {
        Some(bytes) if bytes > 0 || what == "latency" => format!(", {bytes} B"),
        _ => String::new(),
    };
    let mut row = format!("| {what}{size}, {} |", figure["unit"].as_str().unwrap_or_default());
    for net in nets {
        let (value, ratio) = (&figure["values"][net], &figure["ratios"][net]);
        let digits = match value["median"].as_f64() {
            Some(value) if value < 0.1 => 5,
            Some(value) if value < 100.0 => 2,
            _ => 0,
        };
        let [median, least, most] =
            ["median", "least", "most"].map(|part| number(&value[part], digits));
        row += &format!(" {median} ({least}-{most})");
        if *net != nets[0] {
            row += &format!("<br>{} x", number(&ratio["median"], 2));
        }
        row += " |";
    }
    row + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_stand_beside_what_ours_are_of_them() {
        let spread = |median: f64| json!({"median": median, "least": 1.0, "most": 9.5});
        let figure = json!({
            "what": "latency", "bytes": 0, "unit": "us, one way",
            "values": {"a": spread(4.0), COMPARED[0]: spread(3.0), "tcp": spread(6.0)},
            "ratios": {"a": spread(0.75), COMPARED[0]: spread(1.0), "tcp": spread(0.5)},
        });
        let framing = json!({"offloads": false, "idle_before": spread(0.9), "figures": [figure]});
        let page = page(&json!({"framings": [framing], "rounds": 5}));
        let row = "| latency, 0 B, us, one way | 3.00 (1.00-9.50) \
            | 4.00 (1.00-9.50)<br>0.75 x | 6.00 (1.00-9.50)<br>0.50 x |";
        assert!(page.contains(row), "{page}");
    }
}
