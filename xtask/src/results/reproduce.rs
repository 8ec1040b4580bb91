//! The numbers of the documents beside ours.

use serde_json::Value;

use super::format::{list, number};

const HEAD: &str = "\n## What the documents report\n\n\
    Each number that they state beside ours, by `earmark reproduce`, in virtual time. The tolerance\n\
    was there before the run. *Set* means that a constant was set from that number, so that it\n\
    proves nothing; *no-evidence*, that it agrees, and so would a model in which no setting changes\n\
    anything (*if nothing*).\n";

/// The section of `reproduce.json`.
pub(super) fn page(json: &Value) -> String {
    let mut text = format!("{HEAD}\n{}\n", sum(&json["tally"]));
    for seed in list(json, "seeds") {
        text += &format!("\n### {}\n\n{}\n\n", word(seed, "title"), word(seed, "source"));
        text += "| constant | value | origin | where from |\n|---|---|---|---|\n";
        for constant in list(seed, "constants") {
            let [option, origin, why] = ["option", "origin", "why"].map(|key| word(constant, key));
            let value = constant["value"].to_string();
            let of =
                constant["part"].as_str().map(|part| format!(" of {part}")).unwrap_or_default();
            text +=
                &format!("| `--{option}`{of} | {} | {origin} | {why} |\n", value.trim_matches('"'));
        }
        list(seed, "parts").for_each(|it| text += &part(it));
    }
    let wall = number(&json["wall_s"], 0);
    text + &format!("\nReal time: {wall} s.\n") + &super::environment(&json["environment"])
}

fn part(part: &Value) -> String {
    let mut text = format!("\n#### {}\n\n{}\n\n", word(part, "title"), word(part, "about"));
    text += "| number | unit | document | ours | if nothing | difference, % | tolerance | | note |\n\
             |---|---|---|---|---|---|---|---|---|\n";
    for it in list(part, "numbers") {
        let [what, unit, stated, tolerance, verdict, note] =
            ["what", "unit", "stated", "tolerance", "verdict", "note"].map(|key| word(it, key));
        let [ours, nothing] = ["ours", "nothing"].map(|key| number(&it[key], 2));
        let difference = number(&it["difference_percent"], 1);
        text += &format!(
            "| {what} | {unit} | {stated} | {ours} | {nothing} | {difference} | {tolerance} | {verdict} | {note} |\n"
        );
    }
    text
}

fn sum(tally: &Value) -> String {
    let constants = tally["constants"].as_object().into_iter().flatten();
    let constants: Vec<_> = constants.map(|(origin, count)| format!("{count} {origin}")).collect();
    format!(
        "{} predictions agree, {} agree as they would if no setting changed anything, {} do not; of the {} among them that are values {} are within 5 %, {} \
         within 15 %. {} numbers set constants, {} cannot be made. Constants: {}.",
        tally["agree"],
        tally["no_evidence"],
        tally["miss"],
        tally["values"],
        tally["within_5_percent"],
        tally["within_15_percent"],
        tally["set"],
        tally["not_made"],
        constants.join(", "),
    )
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_number_has_a_row() {
        let of = |what: &str, ours: Value, verdict: &str| {
            json!({ "what": what, "unit": "us", "stated": "125", "tolerance": "1 %", "ours": ours, "nothing": 43,
                    "difference_percent": ours, "verdict": verdict, "note": "" })
        };
        let json = json!({
            "tally": { "agree": 1, "no_evidence": 0, "miss": 0, "constants": { "set": 2 } },
            "seeds": [{ "title": "t", "source": "s", "constants": [
                { "option": "ports", "value": "b", "origin": "stated", "why": "w" }],
                "parts": [{ "title": "p", "about": "a", "numbers": [
                    of("one", json!(124.94), "agrees"), of("two", Value::Null, "not-made")] }] }],
        });
        let page = page(&json);
        assert!(
            page.contains("| one | us | 125 | 124.94 | 43.00 | 124.9 | 1 % | agrees |  |"),
            "{page}"
        );
        assert!(page.contains("| two | us | 125 | - | 43.00 | - | 1 % | not-made |  |"), "{page}");
        assert!(
            page.contains("| `--ports` | b | stated | w |") && page.contains("2 set"),
            "{page}"
        );
    }
}
