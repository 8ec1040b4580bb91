//! `earmark reproduce`: numbers of documents beside ours, exact in virtual time; and shards of what
//! runs in guests.

use serde_json::{Value, json};

use crate::support::shards::{assert_merges, lasting, merge, shards};
use crate::support::{Directory, needs, run, run_line};

fn reproduce(what: &str) -> (Value, String) {
    let directory = Directory::new();
    let report = directory.file("report.html");
    let json = run(&["reproduce", what, "--quick", "--json", "--report", &report]).json();
    (json, std::fs::read_to_string(&report).unwrap())
}

fn number<'a>(outcome: &'a Value, what: &str) -> &'a Value {
    let parts = outcome["seeds"][0]["parts"].as_array().unwrap();
    let mut numbers = parts.iter().flat_map(|part| part["numbers"].as_array().unwrap());
    numbers.find(|number| number["what"] == what).unwrap_or_else(|| panic!("{what}: {outcome:#}"))
}

#[test]
fn the_throttle_takes_one_period_and_two_in_step() {
    needs!("guests");
    let (outcome, page) = reproduce("e1000/round-trip");
    for (what, verdict) in [
        ("1 Gbit/s", "agrees"),
        ("two ends in step: periods between receptions", "agrees"),
        ("100 Mbit/s", "misses"),
    ] {
        assert_eq!(number(&outcome, what)["verdict"], verdict, "{outcome:#}");
    }
    let tally = &outcome["tally"];
    assert_eq!([&tally["agree"], &tally["miss"], &tally["set"]], [3, 1, 0]);
    let command = outcome["seeds"][0]["parts"][0]["runs"][0]["command"].as_str().unwrap();
    assert!(command.starts_with("earmark bench tcp-rr --world virtual --"), "{command}");
    assert!(page.contains(command), "{page}");
    run_line("reproduce --list").says(&["openmx/table3", "odroid/ntp"]);
}

#[test]
fn a_clock_is_off_by_half_of_a_hold() {
    needs!("guests");
    let (outcome, page) = reproduce("odroid/ntp");
    let offset = number(&outcome, "the offset moves by half of that: before less after");
    let ours = offset["ours"].as_f64().unwrap();
    assert!((ours - 343.0 / 2.0).abs() < 0.3, "{offset:#}");
    assert!(page.contains("delay:393 becomes delay:50"), "no picture over time: {page}");
    // That the answer stays would be so, too, if the setting did nothing.
    let stays = number(&outcome, "the answer stays: before less after");
    assert_eq!([&stays["verdict"], &offset["verdict"]], ["no-evidence", "agrees"], "{stays:#}");
}

#[test]
fn what_a_constant_was_set_from_proves_nothing() {
    let (outcome, _) = reproduce("openmx/invalid");
    let each = number(&outcome, "an interrupt each");
    assert_eq!(each["verdict"], "set", "{each:#}");
    assert!((each["ours"].as_f64().unwrap() / 965.0 - 1.0).abs() < 0.02, "{each:#}");
    let bound = number(&outcome, "all on one core");
    assert!(bound["ours"].as_f64().unwrap() < 0.0, "{bound:#}");
    assert_eq!(outcome["tally"]["set"], 2);
}

#[test]
fn what_runs_in_virtual_time_is_that_of_its_shards() {
    needs!("guests");
    let compare = "bench tcp-rr --compare disabled,delay:75 --clients 1..2 --think 100";
    let short = "--world virtual --warmup 0.01 --duration 0.05";
    assert_merges(&format!("{compare} {short}"), &[2, 3]);
    assert_merges("probe-blind --world virtual --cases 2", &[2]);
}

#[test]
fn a_scenario_is_that_of_its_shards_without_its_file() {
    needs!("guests");
    let directory = Directory::new();
    let file = directory.write(
        "scenario.toml",
        "title = 'two'\nstory = ''\nworld = 'virtual'\n\
         [[experiment]]\nrun = 'tcp-rr'\n\
         options = { compare = ['delay:75', 'throttle:125'], warmup = 0.01, duration = 0.05 }\n\
         [[experiment]]\nrun = 'ntp'\nnic = { strategy = 'delay:300' }\n\
         options = { change-to = 'disabled', warmup = 0.01, duration = 0.1 }\n",
    );
    let line = format!("bench --scenario {file}");
    let whole = lasting(run_line(&format!("{line} --json")).json());
    let files = shards(&directory, &line, 2);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(lasting(merge(&files, &["--json"]).json()), whole);
    merge(&files, &["--ratios"]).says(&[
        "tcp-rr in the virtual world",
        "ntp in the virtual world",
        "the offset that NTP",
    ]);
    merge(&files, &["--svg", "a.svg"]).refused(&["--svg: a scenario has several pictures"]);
    // The first shard has the first and the last of three cases.
    let partial = merge(&files[..1], &["--json", "--partial"]).json();
    assert_eq!(partial["partial"]["missing"], json!([2]));
    let first = &partial["outcomes"][0]["results"];
    assert!(first[0]["latency_us"]["p50"].is_number() && first[1]["latency_us"].is_null());
    assert_eq!(lasting(partial)["outcomes"][1], whole["outcomes"][1]);
}

#[test]
fn numbers_of_documents_are_those_of_their_shards_and_open_where_one_is_missing() {
    needs!("guests");
    let line = "reproduce e1000/round-trip --quick";
    assert_merges(line, &[2, 3]);
    let directory = Directory::new();
    let files = shards(&directory, line, 2);
    let report = directory.file("report.html");
    let partial = merge(&files[1..], &["--partial", "--json", "--report", &report]).json();
    assert_eq!(partial["partial"], json!({"shards": 2, "missing": [1]}));
    let numbers = partial["seeds"][0]["parts"][0]["numbers"].as_array().unwrap();
    let open = numbers.iter().filter(|number| number["verdict"] == "not-made");
    let notes: Vec<_> = open.map(|number| number["note"].as_str().unwrap()).collect();
    assert!(!notes.is_empty(), "{partial:#}");
    assert!(notes.iter().all(|note| *note == "Not made: a shard of its run is missing."));
    assert!(std::fs::read_to_string(&report).unwrap().contains("a shard of its run is missing"));
}
