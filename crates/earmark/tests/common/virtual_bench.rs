//! Results of `earmark bench` in virtual time, to compare with arithmetic.

use serde_json::Value;

use super::run;

/// A look at a guest's clock takes as long, and a time is the difference of two.
pub(crate) const TICK_US: f64 = 0.257;

/// The only result of `earmark bench` in virtual time with these words.
#[track_caller]
pub(crate) fn result(words: &str) -> Value {
    let always = ["bench", "--world", "virtual", "--json", "--warmup", "0.01"];
    let words: Vec<&str> = always.into_iter().chain(words.split(' ')).collect();
    run(&words).json()["results"][0].clone()
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
