//! The keys of a scenario are the flags of the command line, and so are their values: they become
//! words of one, and the same parser reads them.

use std::collections::BTreeMap;
use std::fmt;

use clap::{Args, Command, FromArgMatches};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::suggestions::legible;

/// A value as TOML has it: `clients = 2` needs no quotes.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected text, a number, true, false, or a list of these")]
enum ScenarioValue {
    Truth(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    List(Vec<ScenarioValue>),
}

impl fmt::Display for ScenarioValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth(value) => value.fmt(f),
            Self::Whole(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
            Self::List(values) => {
                let values: Vec<_> = values.iter().map(ToString::to_string).collect();
                values.join(",").fmt(f)
            }
        }
    }
}

/// Reads options from a table whose keys are their flags.
pub(crate) fn options<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Args + FromArgMatches,
    D: Deserializer<'de>,
{
    let table = BTreeMap::<String, ScenarioValue>::deserialize(deserializer)?;
    let command = T::augment_args(Command::new("scenario").no_binary_name(true));
    let known: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    if let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) {
        let known = known.join(", ");
        return Err(D::Error::custom(format!("unknown key `{unknown}`; there are {known}")));
    }
    let words = table.iter().map(|(key, value)| format!("--{key}={value}"));
    let read = command.try_get_matches_from(words);
    read.and_then(|matches| T::from_arg_matches(&matches)).map_err(|error| {
        // What follows is a hint at `--help`, which scenarios do not have.
        let text = legible(error).to_string();
        let first = text.split("\n\n").next().unwrap_or_default();
        D::Error::custom(first.trim_start_matches("error: "))
    })
}
