//! Results of `earmark bench`, and holds in a capture.

use std::collections::BTreeMap;

use serde_json::Value;

use super::run;

/// A look at a guest's clock takes as long, in microseconds, and a time is the difference of two.
pub(crate) const TICK_US: f64 = 0.257;

/// The results of `earmark bench` in virtual time with these words.
#[track_caller]
pub(crate) fn results(words: &str) -> Vec<Value> {
    let always = ["bench", "--world", "virtual", "--json"];
    let words: Vec<&str> = always.into_iter().chain(words.split_whitespace()).collect();
    run(&words).json()["results"].as_array().unwrap().clone()
}

/// The only result of `earmark bench` in virtual time with these words.
#[track_caller]
pub(crate) fn result(words: &str) -> Value {
    let warmup = if words.contains("--warmup") { "" } else { " --warmup 0.01" };
    results(&format!("{words}{warmup}")).remove(0)
}

/// A number of a result.
#[track_caller]
pub(crate) fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// The median of a round trip.
#[track_caller]
pub(crate) fn p50(result: &Value) -> f64 {
    number(&result["latency_us"], "p50")
}

/// Requires that a figure is no further from what is expected than the tolerance.
#[track_caller]
pub(crate) fn assert_near(value: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((value - expected).abs() <= tolerance, "{what}: {value}, expected {expected}");
}

/// `value` without these fields, which differ from run to run, at any depth.
pub(crate) fn without(mut value: Value, names: &[&str]) -> Value {
    fn strip(value: &mut Value, names: &[&str]) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| !names.contains(&name.as_str()));
                fields.values_mut().for_each(|value| strip(value, names));
            }
            Value::Array(values) => values.iter_mut().for_each(|value| strip(value, names)),
            _ => {}
        }
    }
    strip(&mut value, names);
    value
}

/// How often each queue held a packet for each time in ns, as a capture has it of both ports.
pub(crate) fn holds(path: &str) -> BTreeMap<(u16, u64), usize> {
    let bytes = std::fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let mut holds = BTreeMap::new();
    for comment in text.split("hold=").skip(1) {
        let number = |text: &str| -> Option<u64> {
            text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        let (micros, rest) = comment.split_once('.').unwrap();
        let queue = rest.split_once("queue=").and_then(|(_, queue)| number(queue));
        let (Some(micros), Some(nanos), Some(queue)) = (number(micros), number(rest), queue) else {
            panic!("no hold in {}", comment.get(..80).unwrap_or(comment));
        };
        *holds.entry((queue as u16, micros * 1_000 + nanos)).or_default() += 1;
    }
    holds
}
