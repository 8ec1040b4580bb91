//! What the documents and the command itself say that one can type.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::documents::{divide, words};
use crate::support::{Directory, EARMARK, Lab, needs, output, read, run};

/// Names of the subcommands that `--help` lists.
fn listed() -> Vec<String> {
    let help = run(&["--help"]).output().to_owned();
    let names = help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let is_name = |name: &&str| !name.is_empty() && !name.starts_with('-') && *name != "help";
    names.filter(is_name).map(str::to_owned).collect()
}

#[test]
fn completions_offer_strategies_and_scenarios() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).output().to_owned();
        let words: Vec<&str> = script.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        // Several options take a strategy, and one a scenario; no help has these words.
        for (offered, least) in [("periodic", 4), ("bge", 1), ("openmx", 1)] {
            let count = words.iter().filter(|word| **word == offered).count();
            assert!(count >= least, "{shell}: {offered} {count} times");
        }
    }
}

#[test]
fn the_long_version_names_the_commit_and_the_short_one_does_not() {
    let number = env!("CARGO_PKG_VERSION");
    assert_eq!(run(&["-V"]).output().trim_end(), format!("earmark {number}"));
    let long = run(&["--version"]).output().trim_end().to_owned();
    let commit =
        long.strip_prefix(&format!("earmark {number} (")).and_then(|it| it.split_once(' '));
    let (hash, date) = commit.unwrap_or_else(|| panic!("no commit in {long}"));
    assert!(hash.split('+').next().unwrap().len() >= 10, "{long}");
    assert!(date.ends_with(')') && date.starts_with("20"), "{long}");
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = Directory::new();
    run(&["man", "--all", directory.path().to_str().unwrap()]).output();
    let names = listed();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let page = fs::read_to_string(directory.file(&format!("earmark-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains("Examples:"), "{page}");
        assert_eq!(run(&["man", &name]).output(), page);
    }
    let nested = fs::read_to_string(directory.file("earmark-nic-set.1")).unwrap();
    assert_eq!(run(&["man", "nic", "set"]).output(), nested);
    assert_eq!(run(&["man"]).output(), fs::read_to_string(directory.file("earmark.1")).unwrap());
    // Every page that one of them names is there.
    for file in directory.names() {
        let page = fs::read_to_string(directory.file(&file)).unwrap().replace('\\', "");
        for named in page.split("(1)").filter_map(|text| text.split_whitespace().next_back()) {
            let is_page = named.starts_with("earmark-");
            assert!(
                !is_page || directory.names().contains(&format!("{named}.1")),
                "{file}: {named}"
            );
        }
    }
}

#[test]
fn the_page_of_the_exporter_lists_what_is_exported() {
    let page = read("docs/exporter.md");
    let spans = page.split('`').skip(1).step_by(2);
    let listed: Vec<&str> = spans.filter(|span| span.starts_with("earmark_")).collect();
    let names: Vec<String> =
        exporter::metric::Metric::ALL.iter().map(|metric| metric.family().name()).collect();
    for name in &names {
        assert!(listed.contains(&name.as_str()), "docs/exporter.md lacks `{name}`");
    }
    for name in listed {
        assert!(names.iter().any(|it| it == name), "docs/exporter.md has `{name}`");
    }
}

/// The part of a page below a heading.
fn section(page: &str, heading: &str) -> String {
    let text = read(page);
    let (_, rest) = text.split_once(&format!("{heading}\n")).expect("the page has the heading");
    rest.split("\n#").next().unwrap().to_owned()
}

#[test]
fn the_knobs_turn_in_the_order_printed_whatever_the_lab_began_with() {
    needs!("lab");
    let settings = section("docs/settings.md", "## Settings");
    let rows = settings.lines().skip_while(|line| !line.starts_with("| strategy"));
    let rows =
        rows.take_while(|line| line.starts_with('|')).filter_map(|line| line.split('`').nth(1));
    // A driver decides by the registers of a card, which these hosts have not.
    let is_strategy = |name: &&str| name.parse::<nic::moderation::Moderation>().is_ok();
    let strategies: Vec<_> = rows.filter(is_strategy).filter(|name| *name != "driver").collect();
    assert!(strategies.len() >= 8, "{strategies:?}");
    let knobs = section("docs/lab.md", "## Change the NIC while traffic flows");
    let commands: Vec<_> = divide(&knobs).1.iter().filter_map(|line| words(line)).collect();
    assert!(commands.len() >= 6, "{commands:?}");
    for strategy in strategies {
        let lane: &[&str] = match strategy {
            "lane" => &["--lane", "length<=512", "--queues", "2"],
            _ => &[],
        };
        let mut lab = Lab::start(&[&["--strategy", strategy], lane].concat());
        for command in &commands {
            let mut typed = vec![EARMARK];
            typed.extend(command[1..].iter().map(String::as_str));
            if command[2] == "watch" {
                typed.extend(["--count", "1", "--interval", "0.01"]);
            }
            lab.does(&shlex::try_join(typed).unwrap());
        }
        lab.end().output();
    }
}

/// Linux says that it is 2.6, as where a kernel is too old for hosts; the model needs none.
#[test]
fn a_demo_without_hosts_is_the_model_and_says_what_is_missing() {
    let directory = Directory::new();
    let [report, json] = ["report.html", "demo.json"].map(|name| directory.file(name));
    let mut command = Command::new("setarch");
    command.args(["--uname-2.6", EARMARK, "demo", "--report", &report, "--json", &json]);
    let why = "needs 5.11 or newer";
    output(&mut command).says(&["In a model", "Beside the bulk flow", why, &report]);
    let [page, json] = [report, json].map(|file| fs::read_to_string(file).unwrap());
    let demo: Value = serde_json::from_str(&json).unwrap();
    let rows = demo["model"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8, "{demo:#}");
    for traffic in rows.iter().flat_map(|row| [&row["round_trips"], &row["both"]]) {
        assert!(traffic["latency_us"]["p50"].as_f64() > Some(0.0), "{traffic:#}");
        assert!(traffic["interrupts_per_s"].as_f64() > Some(0.0), "{traffic:#}");
    }
    assert_eq!((demo["rows"].as_array().unwrap().len(), demo["story"].as_str()), (0, Some("")));
    assert!(demo["not_measured"].as_str().unwrap().contains(why));
    assert!(page.contains("<svg") && page.contains(why), "{page}");
    // Its settings are to be had live.
    let rows = &demo["model"]["rows"];
    let (_, state) = page.split_once("earmark page ").unwrap();
    let state = state.split('<').next().unwrap().replace("&amp;", "&").replace("&#39;", "'");
    let played = crate::see::of_state(state.trim().trim_matches('\''));
    let (here, there) = (&played["result"]["results"][0], &rows[1]["both"]);
    assert_eq!(here["setting"], there["setting"], "{state}");
    assert_eq!(here["environment"]["machine"], there["environment"]["machine"], "{state}");
    let apart = |figure: &str| {
        let [here, there] = [here, there].map(|it| it.pointer(figure).unwrap().as_f64().unwrap());
        (here / there - 1.0).abs()
    };
    assert!(apart("/latency_us/p50") < 0.1 && apart("/interrupts_per_s") < 0.1, "{state}");
}
