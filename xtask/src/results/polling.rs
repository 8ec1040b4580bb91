//! What hosts do beside moderation by the NIC: ways to packets, at three loads of one server, and
//! a sender that waits for completions.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::format::{list, number};
use crate::{repo, shell};

/// Where a series with `irq-suspend-timeout` (Linux 6.13) is to be had.
const SUITE: &str = "trixie-backports";

/// Requests a second over eight connections, to a server that takes 20 us for each.
const LOADS: [(&str, &str); 3] = [("low", "1000"), ("middle", "20000"), ("high", "45000")];

const SETTINGS: &str = "disabled,delay:75,marked:75";

const MODES: &str = "epoll,defer:20,busy:200,suspend:20,so-busy-poll:200";

/// Measures each setting with each way, and writes `file`.
///
/// # Errors
/// If there is no such kernel, or a bench fails.
pub(super) fn measure(earmark: &Path, file: &Path) -> Result<()> {
    let kernel = shell::output(Command::new(earmark).args(["kernel", "--suite", SUITE]))?;
    let mut loads = Vec::new();
    for (load, rate) in LOADS {
        println!("polling at {load} load, in virtual time");
        let mut bench = Command::new(earmark);
        bench.args(["bench", "tcp-rr", "--world", "virtual", "--clients", "8", "--compute", "20"]);
        bench.args(["--rate", rate, "--warmup", "0.02", "--duration", "0.1", "--json"]);
        bench.args(["--compare", SETTINGS, "--poll", MODES]);
        bench.env("EARMARK_KERNEL", kernel.trim()).current_dir(repo::root());
        loads.push(json!({ "load": load, "comparison": comparison(&mut bench)? }));
    }
    write(file, &json!({ "loads": loads }))
}

/// `tx-usecs`, with a ring of 256 frames whose end is not waited for.
const COMPLETIONS: [&str; 4] = ["0", "100", "1000", "10000"];

/// Measures a sender of datagrams whose completions are moderated, and writes `file`.
///
/// # Errors
/// If a bench fails.
pub(super) fn measure_transmission(earmark: &Path, file: &Path) -> Result<()> {
    println!("transmission, in virtual time");
    let mut bench = Command::new(earmark);
    bench.args(["bench", "pps", "--world", "virtual", "--strategy", "delay:75", "--json"]);
    bench.args(["--warmup", "0.02", "--duration", "0.1"]).current_dir(repo::root());
    for usecs in COMPLETIONS {
        bench.args(["--apply", &format!("tx-usecs {usecs} tx-frames 256")]);
    }
    write(file, &comparison(&mut bench)?)
}

fn comparison(bench: &mut Command) -> Result<Value> {
    serde_json::from_str(&shell::output(bench)?)
        .with_context(|| format!("reading what `{}` printed", shell::line(bench)))
}

fn write(file: &Path, json: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(json)? + "\n";
    std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// The section of `transmission.json`.
pub(super) fn page_transmission(json: &Value) -> String {
    let mut text = String::from(
        "\n## A sender that waits for completions\n\n\
         Datagrams of 18 bytes as fast as they go through a ring of 256 frames, at 1 Gbit/s, in\n\
         virtual time. The driver stops its queue when the ring is full, and starts it at the\n\
         interrupt for completions.\n\n\
         | setting | datagrams/s | interrupts/s of the receiver |\n|---|---|---|\n",
    );
    for result in list(json, "results") {
        text += &format!(
            "| `{}` | {} | {} |\n",
            result["setting"].as_str().unwrap_or_default(),
            number(&result["datagrams_per_s"], 0),
            number(&result["interrupts_per_s"], 0),
        );
    }
    let first = list(json, "results").next();
    text + &first.map(|result| super::environment(&result["environment"])).unwrap_or_default()
}

const HEAD: &str = "\n## Ways to packets\n\n\
    `--poll` beside moderation by the NIC: requests on a schedule over eight connections, to a\n\
    server that takes 20 us for each, in virtual time. Only the server's host gets at packets in\n\
    these ways; half of the interrupts of `disabled, epoll` are the client's. *Polling* is for how\n\
    many cores the server polled; the kernel's own polls are not in it.\n";

const ROWS: &str = "| setting | p50 us | p99 us | interrupts/s | busy-polled, % | polling |\n\
    |---|---|---|---|---|---|\n";

/// The section of `polling.json`.
pub(super) fn page(json: &Value) -> String {
    let mut text = String::from(HEAD);
    for load in list(json, "loads") {
        let comparison = &load["comparison"];
        let first = list(comparison, "results").next();
        let rate = first.and_then(|it| it["transactions_per_s"].as_f64()).unwrap_or_default();
        let name = load["load"].as_str().unwrap_or_default();
        text += &format!("\n### {name} load: {rate:.0} answers a second\n\n{ROWS}");
        text += &list(comparison, "results").map(row).collect::<String>();
        if let Some(first) = first {
            text += &super::environment(&first["environment"]);
        }
    }
    text
}

fn row(result: &Value) -> String {
    let part = result["busy_polled"].as_f64().zip(result["packets"].as_f64());
    let latency = &result["latency_us"];
    format!(
        "| `{}` | {} | {} | {} | {} | {} |\n",
        result["setting"].as_str().unwrap_or_default(),
        number(&latency["p50"], 1),
        number(&latency["p99"], 1),
        number(&result["interrupts_per_s"], 0),
        part.map_or("-".to_owned(), |(polled, all)| format!("{:.0}", 100.0 * polled / all)),
        number(&result["polling_cpu"], 2),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_what_the_programs_polled() {
        let result = json!({ "setting": "delay:75, busy:200", "interrupts_per_s": 20.0,
            "latency_us": { "p50": 63.3, "p99": 64.04 }, "busy_polled": 99, "packets": 200,
            "polling_cpu": 1.876, "transactions_per_s": 999.6, "environment": {} });
        let json = json!({ "loads": [
            { "load": "low", "comparison": { "results": [result] } }] });
        let page = page(&json);
        assert!(page.contains("### low load: 1000 answers a second"), "{page}");
        assert!(page.contains("| `delay:75, busy:200` | 63.3 | 64.0 | 20 | 50 | 1.88 |"), "{page}");
    }
}
