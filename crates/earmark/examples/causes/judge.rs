//! Whether what `earmark explain` says of a cause is right.

use serde_json::{Value, json};

use crate::bench::{Cause, JudgedPart};

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Judged {
    /// It names the cause, and no other one for the same time.
    Right,
    /// It names the cause and one other, and says that the data does not tell which.
    Both,
    /// It names the cause and more, or says that too little is accounted for.
    Open,
    /// It names another cause, or none.
    Wrong,
    NotPlayed,
}

impl Judged {
    pub(crate) const ALL: [Self; 5] =
        [Self::Right, Self::Both, Self::Open, Self::Wrong, Self::NotPlayed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Both => "both",
            Self::Open => "open",
            Self::Wrong => "wrong",
            Self::NotPlayed => "not-played",
        }
    }
}

/// A program that has made fewer requests got no processor: others have taken all of them.
const FEWEST: u64 = 5;

/// Judges a report by its first cause; what counts of it.
pub(crate) fn judge(cause: &Cause, report: &Value) -> (Judged, Value) {
    let all = report["explained"].as_array().map_or(&[][..], Vec::as_slice);
    // A second one has losses that the first does not have.
    let slowest = || {
        all.iter()
            .max_by_key(|one| one["verdict"]["slowest"]["total_us"].as_f64().map(|us| us as u64))
    };
    let one = if cause.part == JudgedPart::Slowest { slowest() } else { all.first() };
    let Some(one) = one else {
        let requests = &report["account"]["requests"];
        let is_idle = requests.as_u64().is_some_and(|requests| requests < FEWEST);
        let judged = if is_idle { Judged::NotPlayed } else { Judged::Wrong };
        return (judged, json!({ "why": "nothing was explained", "requests": requests }));
    };
    let part = &one["verdict"][cause.part.name()];
    let first = &part["causes"][0];
    let names: Vec<&str> =
        first["causes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_named = names.iter().any(|name| cause.truth.iter().any(|it| it == name));
    let judged = match names.len() {
        0 => Judged::Open,
        1 if is_named => Judged::Right,
        2 if is_named => Judged::Both,
        _ if is_named => Judged::Open,
        _ => Judged::Wrong,
    };
    let said = json!({ "causes": names, "us": first["us"], "requests": part["requests"],
                       "total_us": part["total_us"], "accounted": part["accounted"] });
    (judged, said)
}
