//! Experiments of MX.

use serde_json::Value;

use super::format::{list, number, spread};

/// What messages of an outcome were like, after its name; nothing where there are none.
pub(super) fn terms(outcome: &Value) -> String {
    let mx = &outcome["mx"];
    if mx.is_null() {
        return String::new();
    }
    let marks = mx["marks"].as_str().unwrap_or_default();
    let early = match mx["misorder"].as_u64() {
        None | Some(0) => String::new(),
        Some(frames) => format!(", {frames} frames too early"),
    };
    format!(", {} bytes, marks: {marks}{early}", number(&mx["size"], 0))
}

/// What the columns of other experiments do not tell.
pub(super) fn table(outcome: &Value) -> String {
    if outcome["mx"].is_null() {
        return String::new();
    }
    let mut text = String::from(
        "\n| setting | a message: p50 | p99 | messages/s | interrupts/message |\n|---|---|---|---|---|\n",
    );
    for result in list(outcome, "results") {
        let half = &result["half_round_trip_us"];
        text += &format!(
            "| `{}` | {} | {} | {} {} | {} |\n",
            result["setting"].as_str().unwrap_or_default(),
            number(&half["p50"], 1),
            number(&half["p99"], 1),
            number(&result["messages_per_s"], 0),
            spread(result, "messages_per_s"),
            number(&result["interrupts_per_message"], 2),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_have_a_heading_and_a_table() {
        let outcome = json!({
            "mx": {"size": 8, "in_flight": 1, "marks": "all", "misorder": 3},
            "results": [{
                "setting": "marked:75", "half_round_trip_us": {"p50": 10.04, "p99": 12.0},
                "messages_per_s": 99_000.4, "interrupts_per_message": 1.0,
            }],
        });
        assert_eq!(terms(&outcome), ", 8 bytes, marks: all, 3 frames too early");
        let table = table(&outcome);
        assert!(table.contains("| `marked:75` | 10.0 | 12.0 | 99000  | 1.00 |"), "{table}");
        let other = json!({"mx": null, "results": []});
        assert_eq!((terms(&other), super::table(&other)), (String::new(), String::new()));
    }
}
