//! What users type: how it is read and written, or the words in which it is refused.

use crate::goal::{Goal, Sense};
use crate::lane::mark::{lone_port, translate};
use crate::output::Locator;
use crate::peer::Code;
use crate::setting::steering::{Placed, cpus_text, parse_cpus, parse_table, table_text};
use crate::setting::strategy::{changed, longest_usecs};
use crate::setting::sysctl::Sysctl;
use crate::setting::{Change, Knob, Setting, State, Value, profile};

/// What becomes of a text of that kind, in a line.
fn read(kind: &str, text: &str) -> Result<String, String> {
    match kind {
        "change" => text.parse::<Change>().map(|it| it.to_string()),
        "knob" => text.parse::<Knob>().map(|it| it.to_string()),
        "sysctl" => text.parse::<Sysctl>().map(|it| format!("{it} {}", it.path())),
        "profile" => profile::parse(text).map(|it| profile::text(&it)),
        "rule" => text.parse::<Placed>().map(|it| it.to_string()),
        "table" => parse_table(text).map(|it| format!("{} of {it:?}", table_text(&it))),
        "cpus" => parse_cpus(text).map(|it| cpus_text(&it)),
        "code" => text.parse::<Code>().map(|it| it.to_string()),
        "locator" => text.parse::<Locator>().map(|_| "a locator".into()),
        "goal" => text.parse::<Goal>().map(|goal| {
            let aim = if goal.aim.0 == Sense::Min { "min" } else { "max" };
            let limits = goal.limits.iter().map(|limit| format!(", {limit}"));
            format!("{aim} {}{} ({})", goal.aim.1, limits.collect::<String>(), goal.latency())
        }),
        "mark" => translate(text, 3).map(|lane| {
            let ways = |ways: &[netdev::ethtool::FlowRule]| {
                ways.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
            };
            let rules = lane.candidates.iter().map(|candidate| ways(&candidate.ways));
            rules.chain(lane.lost).collect::<Vec<_>>().join(" | ")
        }),
        "port" => Ok(format!("{:?}", lone_port(text))),
        "strategy" => {
            let (now, change) = text.split_once("; ").expect("a strategy, and a change of it");
            let state = [
                (Setting::Strategy, Value::Text(now.into())),
                (Setting::RxUsecs, Value::Number(32)),
                (Setting::RxFrames, Value::Number(8)),
            ];
            let becomes = changed(&State(state.into()), &change.parse()?);
            let becomes = becomes.map(|it| it.to_string());
            becomes
                .map(|it| format!("{it} ({} us)", longest_usecs(&it, 14)))
                .map_err(|why| why.to_string())
        }
        other => panic!("{other} is no kind of text"),
    }
}

#[test]
fn texts_are_read_and_written_or_refused_in_words() {
    let expected = include_str!("texts.txt");
    let line = |line: &str| {
        let (kind, text) = line.split_once(": ").expect("KIND: TEXT");
        let text = text.replace("(nothing)", "").replace("\\n", "\n").replace("\\0", "\0");
        let said = read(kind, &text).unwrap_or_else(|why| format!("refused: {why}"));
        format!("{line}\n  {}\n", said.replace('\n', "\\n").replace('\0', "\\0"))
    };
    let now: String = expected.lines().filter(|it| !it.starts_with(' ')).map(line).collect();
    assert_eq!(now, expected, "\n{now}");
}
