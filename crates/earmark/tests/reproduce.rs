//! `earmark reproduce`: numbers of documents beside ours, exact in virtual time.

mod common;

use common::{Directory, run};
use serde_json::Value;

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
    assert!(page.contains(command) && page.matches("<figure").count() == 1, "{page}");
}

#[test]
fn a_clock_is_off_by_half_of_a_hold() {
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
    assert!((each["ours"].as_f64().unwrap() - 965.0).abs() < 1.0, "{each:#}");
    let bound = number(&outcome, "all on one core");
    assert_eq!((&bound["verdict"], bound["ours"].is_null()), (&"not-made".into(), true));
    assert_eq!(outcome["tally"]["agree"], 0);
}

#[test]
fn what_there_is_not_is_refused_with_what_there_is() {
    run(&["reproduce", "bge/latency"]).refused(&["`bge/latency`", "e1000, bge, odroid, openmx"]);
    let list = run(&["reproduce", "--list"]);
    let list = list.output();
    assert!(list.contains("openmx/table3") && list.contains("odroid/ntp"), "{list}");
}
