//! Which frames of MX are marked, as text: `all`, `none`, some of them, or all but some; and
//! besides, those half way.
//!
//! ```text
//! marks = "none" | ( "all" { "-" name } | name { "+" name } ) [ "+halfway" ]
//! name  = "small" | "medium-last" | "rendezvous" | "pull" | "reply-last" | "notify"
//! ```

use std::fmt;
use std::str::FromStr;

use mx::config::Marks;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkNames(pub Marks);

impl MarkNames {
    /// What the paper marks.
    pub const ALL: Self = Self(Marks::ALL);

    fn has(self, mark: Marks) -> bool {
        self.0.without(mark) != self.0
    }
}

/// How a text ends that wants the marks half way besides.
const HALFWAY: &str = "+halfway";

/// The mark whose name `text` begins with, and what follows.
fn first(text: &str) -> Option<(Marks, &str)> {
    Marks::NAMES.iter().find_map(|(name, mark)| Some((*mark, text.strip_prefix(name)?)))
}

/// `marks`, changed for each of the names in `text`, which begin with `sign`.
fn each(
    mut text: &str,
    sign: char,
    mut marks: Marks,
    change: fn(Marks, Marks) -> Marks,
) -> Option<Marks> {
    while !text.is_empty() {
        let (mark, rest) = first(text.strip_prefix(sign)?)?;
        (marks, text) = (change(marks, mark), rest);
    }
    Some(marks)
}

impl FromStr for MarkNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (named, besides) = match text.strip_suffix(HALFWAY) {
            Some("none") | None => (text, Marks::NONE),
            Some(named) => (named, Marks::HALFWAY),
        };
        let marks = match (named, named.strip_prefix("all")) {
            ("none", _) => Some(Marks::NONE),
            (_, Some(less)) => each(less, '-', Marks::ALL, Marks::without),
            ("", _) => None,
            _ => each(&format!("+{named}"), '+', Marks::NONE, Marks::with),
        };
        marks.map(|marks| Self(marks.with(besides))).ok_or_else(|| {
            let names = Marks::NAMES.map(|(name, _)| name).join(", ");
            format!(
                "`{text}` names no marks of MX; write all, none, all-rendezvous or small+pull, of \
                 {names}; and all+halfway for those half way besides"
            )
        })
    }
}

impl fmt::Display for MarkNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |wanted: bool| {
            let named = Marks::NAMES.iter().filter(move |(_, mark)| self.has(*mark) == wanted);
            named.map(|(name, _)| *name).collect::<Vec<_>>()
        };
        let (there, missing) = (names(true), names(false));
        if there.is_empty() {
            return f.write_str("none");
        }
        if missing.len() < there.len() {
            f.write_str("all")?;
            missing.iter().try_for_each(|name| write!(f, "-{name}"))?;
        } else {
            f.write_str(&there.join("+"))?;
        }
        f.write_str(if self.has(Marks::HALFWAY) { HALFWAY } else { "" })
    }
}

impl Serialize for MarkNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MarkNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_marks_are_the_same() {
        for text in ["all", "none", "all-rendezvous", "all-medium-last-reply-last", "small+pull"] {
            assert_eq!(text.parse::<MarkNames>().unwrap().to_string(), text);
            if text != "none" {
                let half = format!("{text}+halfway");
                assert_eq!(half.parse::<MarkNames>().unwrap().to_string(), half);
            }
        }
        let without = MarkNames(Marks::ALL.without(Marks::PULL).without(Marks::NOTIFY));
        assert_eq!("all-notify-pull".parse(), Ok(without));
        assert_eq!("reply-last".parse(), Ok(MarkNames(Marks::REPLY_LAST)));
    }

    #[test]
    fn what_names_no_marks_is_refused() {
        for wrong in [
            "",
            "al",
            "all-",
            "all+pull",
            "pull-notify",
            "pull+",
            "all-rendez",
            "none-pull",
            "halfway",
            "+halfway",
            "none+halfway",
            "all+halfway+halfway",
            "all-halfway",
        ] {
            let error = wrong.parse::<MarkNames>().unwrap_err();
            assert!(error.contains("all-rendezvous") && error.contains("notify"), "{error}");
        }
    }
}
