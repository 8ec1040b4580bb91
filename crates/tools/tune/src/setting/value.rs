//! Values of settings, and what kinds of them there are.

use std::fmt;

use base::quantity::Unit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{profile, steering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Number(Unit),
    Switch,
    /// The steps of adaptive moderation ([`profile`]).
    Steps,
    Table,
    Cpus,
    Text,
}

impl ValueKind {
    pub(super) fn read(self, name: &str, text: &str) -> Result<Value, String> {
        let written = match self {
            Self::Switch => match text {
                "on" => return Ok(Value::Switch(true)),
                "off" => return Ok(Value::Switch(false)),
                _ => return Err(format!("{name} {text}: on or off")),
            },
            Self::Number(unit) => {
                let number = unit.read_whole(text, 0..=u32::MAX.into());
                return number.map(Value::Number).map_err(|why| format!("{name}: {text} {why}"));
            }
            Self::Text => Ok(text.to_owned()),
            Self::Steps => profile::parse(text).map(|steps| profile::text(&steps)),
            Self::Table => steering::parse_table(text).map(|table| steering::table_text(&table)),
            Self::Cpus => steering::parse_cpus(text).map(|cpus| steering::cpus_text(&cpus)),
        };
        written.map(Value::Text).map_err(|why| format!("{name} {why}"))
    }
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `on` or `off`.
    Switch(bool),
    /// A number in the unit of its setting.
    Number(u64),
    /// Text in a form of its own.
    Text(String),
}

impl Value {
    /// The number; that of a switch is 0 or 1, words have none.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Switch(on) => Some(u64::from(*on)),
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }

    /// Whether a switch is on; others are no switches.
    pub fn switch(&self) -> Option<bool> {
        match self {
            Self::Switch(on) => Some(*on),
            _ => None,
        }
    }

    /// Whether `now` is what was asked for: steps of a profile may leave numbers as they are.
    pub(crate) fn is_met_by(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Text(asked), Self::Text(now)) => profile::is_met(asked, now),
            _ => self == now,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}
