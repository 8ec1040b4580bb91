//! What causes are in words: `causes.toml`, and times.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judge::SLOWER;
use super::verdict::{Acquitted, CauseGroup, PartVerdict, RequestVerdict};
use super::{Facts, FlowCause, Side};
use crate::evidence::OwnHold;

/// What to do about a cause.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CauseAdvice {
    /// The cause that it is for.
    pub cause: FlowCause,
    /// What to do, for people.
    pub takes: String,
    /// What that costs, for people.
    pub costs: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CauseText {
    what: String,
    takes: String,
    costs: String,
    /// The command that shows whether it is this one.
    tells: String,
}

fn of(cause: FlowCause) -> &'static CauseText {
    static TABLE: OnceLock<BTreeMap<String, CauseText>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        toml::from_str(include_str!("causes.toml")).expect("the table is well-formed")
    });
    table.get(&name(cause)).expect("each cause has a text")
}

/// As JSON and the table have it.
fn name(cause: FlowCause) -> String {
    let json = serde_json::to_value(cause).ok();
    json.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The causes in a sentence.
pub(super) fn what(causes: &[FlowCause]) -> String {
    let all: Vec<&str> = causes.iter().map(|cause| of(*cause).what.as_str()).collect();
    all.join(", or ")
}

/// What to do about a cause.
pub(super) fn advice(cause: FlowCause, facts: &Facts) -> CauseAdvice {
    let text = of(cause);
    CauseAdvice { cause, takes: filled(&text.takes, facts), costs: filled(&text.costs, facts) }
}

/// Causes that the far host has itself, by what it has followed.
pub(super) fn seen_there(mut group: CauseGroup) -> CauseGroup {
    group.side = match group.side {
        Side::Mine => Side::Theirs,
        Side::Theirs => Side::Mine,
        other => other,
    };
    let there = |text: &str| match text.strip_prefix("on the far host: ") {
        Some(back) => format!("on this host: {back}"),
        None => format!("on the far host: {text}"),
    };
    group.what = format!("as the far host sees it, {}", group.what);
    group.advice.iter_mut().for_each(|advice| advice.takes = there(&advice.takes));
    group.separates = group.separates.iter().map(|tells| there(tells)).collect();
    group
}

/// The commands that separate causes that data of this host does not separate.
pub(super) fn separates(causes: &[FlowCause], facts: &Facts) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for cause in causes.iter().filter(|_| causes.len() > 1) {
        let tells = filled(&of(*cause).tells, facts);
        if !all.contains(&tells) {
            all.push(tells);
        }
    }
    all
}

fn filled(text: &str, facts: &Facts) -> String {
    let device = facts.device.unwrap_or("DEV");
    let packets = format!("{:.0}", facts.packets_per_s);
    let text = text.replace("{change}", &change(device, facts.own_hold));
    text.replace("{device}", device).replace("{packets}", &packets)
}

/// The command that ends the hold of this NIC.
fn change(device: &str, own_hold: &OwnHold) -> String {
    match own_hold {
        OwnHold::Counted { lab, .. } => format!("earmark nic --lab {lab} set {device} rx-usecs 0"),
        OwnHold::Set { single_frame: true, .. } => {
            format!("ethtool -C {device} adaptive-rx off rx-usecs 0 rx-frames 1")
        }
        _ => format!("ethtool -C {device} adaptive-rx off rx-usecs 0"),
    }
}

/// A time of so many microseconds.
pub(crate) fn time(us: f64) -> String {
    match us {
        us if us < 100.0 => format!("{us:.1} us"),
        us if us < 10_000.0 => format!("{us:.0} us"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

impl RequestVerdict {
    /// For people: a paragraph for each part that says something new, then what to do.
    pub fn text(&self) -> String {
        let mut text = self.typical.text("Typical");
        let groups = |part: &PartVerdict| -> Vec<Vec<FlowCause>> {
            part.causes.iter().map(|group| group.causes.clone()).collect()
        };
        let (typical, mean) = (&self.typical, &self.mean);
        // A mean that is about as long and has the same causes says nothing new.
        let is_near = (mean.total_us - typical.total_us).abs() < 0.25 * typical.total_us;
        if !is_near || groups(mean) != groups(typical) {
            text += &mean.text("Mean");
        }
        if self.slowest.total_us >= SLOWER * typical.total_us {
            let more = time(self.slowest.total_us - typical.total_us);
            text += &self.slowest.text(&format!("Slowest 1 %, {more} more than that"));
        } else {
            let longest = time(self.slowest.total_us);
            text += &format!("Slowest 1 %, {longest}: hardly longer than typical ones.\n");
        }
        let all = || [typical, mean, &self.slowest].into_iter().flat_map(|part| &part.causes);
        let mut seen: Vec<&[FlowCause]> = Vec::new();
        for group in all() {
            if !seen.contains(&group.causes.as_slice()) {
                seen.push(&group.causes);
                text += &group.to_do();
                let alike = all().filter(|it| it.causes == group.causes);
                text += &alike
                    .map(CauseGroup::stack_text)
                    .find(|it| !it.is_empty())
                    .unwrap_or_default();
            }
        }
        let acquitted: Vec<String> = self.acquitted.iter().map(Acquitted::text).collect();
        if !acquitted.is_empty() {
            text += &format!("In no request the cause: {}.\n", acquitted.join(", "));
        }
        if self.pipelined > 0 {
            text += &format!(
                "During {} of the {} requests others were in flight on their connection; which of \
                 the stages belong to which, cannot be seen.\n",
                self.pipelined, self.mean.requests
            );
        }
        text
    }
}

impl PartVerdict {
    fn text(&self, name: &str) -> String {
        let whole = time(self.total_us);
        if self.causes.is_empty() {
            let share = (100.0 * self.accounted).floor();
            return format!(
                "{name}, {whole}: stages account for {share:.0} % of it, which is too little to \
                 name a cause.\n"
            );
        }
        let causes: Vec<String> = self.causes.iter().map(CauseGroup::text).collect();
        format!("{name}, {whole}: {}.\n", causes.join("; and "))
    }
}

impl CauseGroup {
    fn text(&self) -> String {
        let side = match self.side {
            Side::Mine => "this host",
            Side::Theirs => "the far side",
            Side::Between => "the way between",
            Side::Unknown => "side unknown",
        };
        let seen = self.seen.as_ref().map_or(String::new(), |seen| format!(" ({seen})"));
        let share = 100.0 * self.share;
        format!("{} ({share:.0} %, {side}): {}{seen}", time(self.us), self.what)
    }

    /// Where the program waits, if that is known.
    fn stack_text(&self) -> String {
        if self.stack.is_empty() {
            return String::new();
        }
        let frames: String = self.stack.iter().map(|frame| format!("  {frame}\n")).collect();
        format!("The stack in which most of them wait:\n{frames}")
    }

    fn to_do(&self) -> String {
        let names: Vec<String> = self.causes.iter().map(|cause| name(*cause)).collect();
        let names = names.join(" or ");
        match (self.separates.as_slice(), self.advice.as_slice()) {
            ([], []) => String::new(),
            ([], [CauseAdvice { takes, costs, .. }, ..]) => {
                format!("Against {names}: {takes}. It costs {costs}.\n")
            }
            (separates, _) => {
                let lines = separates.iter().map(|command| format!("  {command}\n"));
                format!("Which of {names}:\n{}", lines.collect::<String>())
            }
        }
    }
}

impl Acquitted {
    fn text(&self) -> String {
        if self.at_most_us == 0.0 {
            return format!("{} (none)", self.at.name());
        }
        format!("{} (at most {})", self.at.name(), time(self.at_most_us))
    }
}
