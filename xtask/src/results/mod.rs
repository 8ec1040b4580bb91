//! The figures that the documentation quotes, measured and written by our own commands.
//!
//! `docs/results/*.json` is what `earmark` printed; `docs/results/README.md` and the demo's table
//! in `docs/bench.md` are generated from it. No figure is typed by hand.

mod format;
mod messages;
mod mpi;
pub(crate) mod npb;
mod polling;
mod reproduce;
mod tradeoff;
mod worlds;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{repo, shell};
use format::{environment, list, number, spread};

/// The scenarios that are measured.
const SCENARIOS: [&str; 10] =
    ["e1000", "phase", "bge", "odroid", "mixed", "openmx", "bursts", "intel", "strategies", "lane"];

/// Where the demo's table goes in its page.
const DEMO_PAGE: &str = "docs/bench.md";
const BEGIN: &str = "<!-- demo table -->";
const END: &str = "<!-- end of demo table -->";

/// Measures everything (about ten minutes), then writes it down.
pub(crate) fn run(options: &Options) -> Result<()> {
    let directory = repo::root().join("docs/results");
    fs::create_dir_all(&directory)?;
    if !options.write_only {
        measure(&directory, &options.only)?;
    }
    // A part that has not been measured yet has no section.
    let optional = |file: &str, section: fn(&Value) -> String| -> Result<String> {
        let path = directory.join(file);
        if path.exists() { Ok(section(&read(&path)?)) } else { Ok(String::new()) }
    };
    let mut page = String::from(HEAD);
    for name in SCENARIOS {
        let path = directory.join(format!("{name}.json"));
        page += &format!("\n## Scenario {name}\n");
        // A new one must not keep the others from being written.
        page += &if path.exists() {
            scenario(&read(&path)?)
        } else {
            format!("\nNot measured yet: `cargo xtask results --only {name}`.\n")
        };
    }
    page += &chronyd(&read(&directory.join("odroid-virtual.json"))?);
    page += &tradeoff::page(&read(&directory.join("tradeoff.json"))?);
    page += &optional("polling.json", polling::page)?;
    page += &optional("transmission.json", polling::page_transmission)?;
    page += &reproduce::page(&read(&directory.join("reproduce.json"))?);
    page += &worlds::page(&read(&directory.join("worlds.json"))?);
    page += &optional("mpi.json", mpi::page)?;
    page += &optional("mpi-within-host.json", mpi::page_within_host)?;
    page += &optional("npb.json", npb::page)?;
    fs::write(directory.join("README.md"), page)?;
    let demo = read(&directory.join("demo.json"))?;
    put_into_page(&demo_table(&demo))
}

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Measure nothing; write the pages from the JSON files that are there
    #[arg(long)]
    write_only: bool,
    /// Measure these parts alone: a scenario's name, chronyd, tradeoff, polling,
    /// transmission, reproduce, worlds, adaptive, mpi, mpi-within-host, demo
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<String>,
}

const HEAD: &str = "# Results\n\n\
    Written by `cargo xtask results` from the JSON files beside it; do not edit. Times are\n\
    microseconds. A range in brackets is the smallest and largest median of a round.\n";

/// The parts that are no scenarios.
const PARTS: [&str; 10] = [
    "chronyd",
    "tradeoff",
    "polling",
    "transmission",
    "reproduce",
    "worlds",
    "adaptive",
    "mpi",
    "mpi-within-host",
    "demo",
];

fn measure(directory: &Path, only: &[String]) -> Result<()> {
    for name in only {
        let known = SCENARIOS.iter().chain(&PARTS).any(|part| part == name);
        ensure!(known, "there is no part {name}; there are {SCENARIOS:?} and {PARTS:?}");
    }
    let wanted = |part: &str| only.is_empty() || only.iter().any(|name| name == part);
    shell::run(&mut shell::cargo(["build", "--release", "--package", "earmark"]))?;
    let earmark = repo::target_directory()?.join("release/earmark");
    let print_to = |file: &str, arguments: &[&str]| -> Result<()> {
        let mut command = std::process::Command::new(&earmark);
        let output = shell::output(command.args(arguments).current_dir(repo::root()))?;
        Ok(fs::write(directory.join(file), output)?)
    };
    for name in SCENARIOS.into_iter().filter(|name| wanted(name)) {
        println!("scenario {name}");
        print_to(&format!("{name}.json"), &["bench", "--json", "--scenario", name])?;
    }
    for (part, example) in [("chronyd", "odroid"), ("tradeoff", "tradeoff")] {
        if wanted(part) {
            println!("{part} in virtual time");
            let words = ["run", "--release", "--package", "earmark", "--example", example, "--"];
            shell::run(shell::cargo(words).arg(directory))?;
        }
    }
    if wanted("polling") {
        polling::measure(&earmark, &directory.join("polling.json"))?;
    }
    if wanted("transmission") {
        polling::measure_transmission(&earmark, &directory.join("transmission.json"))?;
    }
    if wanted("reproduce") {
        println!("what the documents report");
        let npb = ["--npb", "docs/results/npb.json"];
        let words: &[&str] = if directory.join("npb.json").exists() { &npb } else { &[] };
        print_to("reproduce.json", &[&["reproduce", "--json"], words].concat())?;
    }
    if wanted("worlds") {
        worlds::measure(&earmark, &directory.join("worlds.json"))?;
    }
    if wanted("adaptive") {
        println!("adaptive against Linux's own");
        print_to("adaptive.json", &["adaptive", "--json"])?;
        for nic in ["e1000e", "e1000", "iavf"] {
            let file = format!("adaptive-{nic}.json");
            print_to(&file, &["adaptive", "--nic", nic, "--json"])?;
        }
    }
    if wanted("mpi") {
        mpi::measure(&directory.join("mpi.json"), false)?;
    }
    if wanted("mpi-within-host") {
        mpi::measure(&directory.join("mpi-within-host.json"), true)?;
    }
    if wanted("demo") {
        // Its command line is in the result, which shows no path of this machine.
        let target = repo::target_directory()?;
        let mut demo = std::process::Command::new(&earmark);
        demo.args(["demo", "--report", "report.html", "--json", "demo.json"]);
        shell::run(demo.current_dir(&target))?;
        fs::copy(target.join("demo.json"), directory.join("demo.json"))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("reading {}; run `cargo xtask results` first", path.display()))?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

fn scenario(json: &Value) -> String {
    let mut text = String::new();
    for outcome in list(json, "outcomes") {
        let name = outcome["experiment"].as_str().unwrap_or_default();
        text += &format!("\n### {name}{}\n\n", messages::terms(outcome));
        text += &results(outcome);
        text += &messages::table(outcome);
        text += &halves(outcome);
        text += &two_periods(outcome);
        text += &ratios(outcome);
        if let Some(first) = list(outcome, "results").next() {
            text += &environment(&first["environment"]);
        }
    }
    text
}

fn results(outcome: &Value) -> String {
    let mut text = String::from(
        "| setting | clients | min | p50 | p99 | mean | answers/s | bulk Mbit/s | interrupts/s |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for result in list(outcome, "results") {
        let latency = &result["latency_us"];
        let bulk = result["bulk_bits_per_s"].as_f64().map(|bits| bits / 1e6);
        text += &format!(
            "| `{}` | {} | {} | {} {} | {} | {} | {} {} | {} | {} {} |\n",
            result["setting"].as_str().unwrap_or_default(),
            number(&result["clients"], 0),
            number(&latency["min"], 1),
            number(&latency["p50"], 1),
            spread(result, "latency_p50_us"),
            number(&latency["p99"], 1),
            number(&latency["mean"], 1),
            number(&result["transactions_per_s"], 0),
            spread(result, "transactions_per_s"),
            bulk.map_or_else(|| "-".to_owned(), |bulk| format!("{bulk:.0}")),
            number(&result["interrupts_per_s"], 0),
            spread(result, "interrupts_per_s"),
        );
    }
    text
}

fn halves(outcome: &Value) -> String {
    let mut text = String::new();
    for half in list(outcome, "results").flat_map(|result| list(result, "halves")) {
        let median =
            |name: &str| format!("{} {}", number(&half[name]["p50"], 1), spread(half, name));
        text += &format!(
            "| `{}` | {} | {} | {} | {} |\n",
            half["setting"].as_str().unwrap_or_default(),
            median("round_trip_us"),
            median("request_us"),
            median("response_us"),
            median("offset_us"),
        );
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\n| median | round trip | request half | response half | offset |\n|---|---|---|---|---|\n{text}"
    )
}

/// How many round trips took about two periods of a throttle.
fn two_periods(outcome: &Value) -> String {
    let mut text = String::new();
    for result in list(outcome, "results").filter(|result| result["clients"].is_null()) {
        let setting = result["setting"].as_str().unwrap_or_default();
        let Some(period) = setting.strip_prefix("throttle:").and_then(|n| n.parse::<f64>().ok())
        else {
            continue;
        };
        let near = |bin: &&Value| {
            let from = bin["from_us"].as_f64().unwrap_or(0.0);
            (period * 1.85..period * 2.3).contains(&from)
        };
        let count =
            |bins: Vec<&Value>| bins.iter().filter_map(|b| b["count"].as_u64()).sum::<u64>();
        let twice = count(list(result, "latency_histogram").filter(near).collect());
        let all = count(list(result, "latency_histogram").collect());
        text += &format!("\n`{setting}`: {twice} of {all} round trips took about two periods.\n");
    }
    text
}

/// The ratios that the scenarios are about.
fn ratios(outcome: &Value) -> String {
    let wanted = [
        ("latency_p50", "marked:75", "disabled"),
        ("latency_p50", "stream:75", "disabled"),
        ("interrupts", "marked:75", "delay:75"),
        ("interrupts", "stream:75", "delay:75"),
    ];
    let mut text = String::new();
    for ratio in list(outcome, "ratios") {
        let field = |name: &str| ratio[name].as_str().unwrap_or_default();
        if wanted.contains(&(field("figure"), field("of"), field("to"))) {
            text += &format!(
                "- {} of `{}` / `{}`: {} ({}-{})\n",
                field("figure").replace('_', " "),
                field("of"),
                field("to"),
                number(&ratio["median"], 3),
                number(&ratio["min"], 3),
                number(&ratio["max"], 3),
            );
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// What the example `odroid` has measured.
fn chronyd(json: &Value) -> String {
    let mut text = format!(
        "\n## Real chronyd in virtual time\n\n{}\n\n![offset and halves](odroid-virtual.svg)\n\n\
         | median | round trip | request half | response half | offset |\n|---|---|---|---|---|\n",
        json["story"].as_str().unwrap_or_default()
    );
    for client in list(json, "clients") {
        let host = client["host"].as_str().unwrap_or_default();
        for when in ["before", "after", "moved"] {
            let figure = |name: &str| number(&client["medians"][name][when], 1);
            text += &format!(
                "| {host}, {when} | {} | {} | {} | {} |\n",
                figure("round_trip_us"),
                figure("request_us"),
                figure("response_us"),
                figure("offset_us"),
            );
        }
    }
    text
}

fn demo_table(demo: &Value) -> String {
    let mut text = String::from(
        "| strategy | alone: round trip p50 | alone: bulk Gbit/s | both: round trip p50 | both: p99 | \
         both: interrupts/s | both: packets/interrupt |\n|---|---|---|---|---|---|---|\n",
    );
    for row in list(demo, "rows") {
        let bulk = row["bulk"]["bulk_bits_per_s"].as_f64().unwrap_or(0.0) / 1e9;
        text += &format!(
            "| `{}` | {} us | {bulk:.2} | {} us | {} us | {} | {} |\n",
            row["setting"].as_str().unwrap_or_default(),
            number(&row["round_trips"]["latency_us"]["p50"], 0),
            number(&row["both"]["latency_us"]["p50"], 0),
            number(&row["both"]["latency_us"]["p99"], 0),
            number(&row["both"]["interrupts_per_s"], 0),
            number(&row["both"]["packets_per_interrupt"], 1),
        );
    }
    text
}

fn put_into_page(table: &str) -> Result<()> {
    let path = repo::root().join(DEMO_PAGE);
    let page = fs::read_to_string(&path)?;
    let (before, rest) =
        page.split_once(BEGIN).with_context(|| format!("{DEMO_PAGE} has no {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{DEMO_PAGE} has no {END}"))?;
    fs::write(&path, format!("{before}{BEGIN}\n{table}{END}{after}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_becomes_a_table_with_its_spread() {
        let json = serde_json::json!({"outcomes": [{
            "experiment": "tcp-rr",
            "results": [{
                "setting": "delay:75", "clients": null, "latency_us": {"min": 1.0, "p50": 2.26},
                "rounds": [{"latency_p50_us": 2.0}, {"latency_p50_us": 3.0}], "halves": [],
                "environment": {"cpus": 2},
            }],
            "ratios": [],
        }]});
        let text = scenario(&json);
        assert!(text.contains("### tcp-rr") && text.contains("| 2.3 (2-3) |"), "{text}");
    }
}
