//! What is kept of a long document: medians and ranges instead of every bin and every round.

use serde_json::{Map, Value, json};

/// Fields that are too long to be kept, or follow from others.
const DROPPED: [&str; 7] = [
    "latency_histogram",
    "rounds",
    "hold_us",
    "interrupts_by_reason",
    "timer_overshoot_us",
    "marked",
    "scores",
];

/// The document without [`DROPPED`] and without what is null or empty; numbers have five digits,
/// and the first environment stands for all. `rounds` leave the least and the most of each figure.
pub(crate) fn shortened(json: &Value) -> Value {
    let mut environment = None;
    let mut kept = short(json, &mut environment);
    if let (Some(fields), Some(environment)) = (kept.as_object_mut(), environment) {
        fields.insert("environment".into(), environment);
    }
    kept
}

fn short(json: &Value, environment: &mut Option<Value>) -> Value {
    match json {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                if name == "environment" {
                    environment.get_or_insert_with(|| short(value, &mut None));
                } else if !DROPPED.contains(&name.as_str()) && !is_ratios(name, value) {
                    let value = short(value, environment);
                    let is_empty = value.is_null() || value == json!([]) || value == json!({});
                    if !is_empty {
                        kept.insert(name.clone(), value);
                    }
                }
            }
            let ranges = ranges(&fields.get("rounds").cloned().unwrap_or_default());
            kept.extend((!ranges.is_empty()).then(|| ("ranges".to_owned(), ranges.into())));
            Value::Object(kept)
        }
        Value::Array(values) => values.iter().map(|value| short(value, environment)).collect(),
        Value::Number(number) if number.is_f64() => json!(digits(number.as_f64().unwrap_or(0.0))),
        _ => json.clone(),
    }
}

/// Whether these are the ratios of each setting to each other one.
fn is_ratios(name: &str, value: &Value) -> bool {
    name == "ratios" && value.is_array()
}

/// The least and the most of each number in several rounds.
fn ranges(rounds: &Value) -> Map<String, Value> {
    let rounds = rounds.as_array().map_or(&[][..], Vec::as_slice);
    let mut ranges = Map::new();
    let names = rounds.first().and_then(Value::as_object).into_iter().flat_map(Map::keys);
    for name in names.filter(|_| rounds.len() > 1) {
        let values: Vec<f64> = rounds.iter().filter_map(|round| round[name].as_f64()).collect();
        if values.len() == rounds.len() {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            ranges.insert(name.clone(), json!([digits(least), digits(most)]));
        }
    }
    ranges
}

/// The number with five digits.
fn digits(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// The document as text.
pub(crate) fn text(json: &Value) -> String {
    format!("{json:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_leave_their_range_and_environments_the_first() {
        let result = |p50: f64, machine: &str| {
            json!({ "p50": p50, "none": null, "ports": [], "latency_histogram": [1],
                    "rounds": [{"p50": 2.0, "x": null}, {"p50": 3.456_789, "x": null}],
                    "environment": {"machine": machine} })
        };
        let kept = shortened(&json!({ "results": [result(2.345_678, "a"), result(7.0, "b")] }));
        let ranges = json!({ "p50": [2.0, 3.4568] });
        let expected = json!({
            "environment": { "machine": "a" },
            "results": [{"p50": 2.3457, "ranges": ranges}, {"p50": 7.0, "ranges": ranges}],
        });
        assert_eq!(kept, expected);
    }
}
