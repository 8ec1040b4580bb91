//! Which number of a command's output counts.
//!
//! Programs print many numbers, and the last one is seldom what they measured. So one counts only
//! if there is no doubt which: the user names it, the program's format is known, or
//! it is the only one that has a line to itself. Whatever names a number has to find exactly one.

use std::str::FromStr;

use regex_lite::{Captures, Regex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::goal::Sense;

/// What a program prints, as `known.toml` has it.
#[derive(Clone, Debug, Deserialize)]
struct Known {
    program: String,
    what: String,
    better: Sense,
    locator: String,
}

#[derive(Deserialize)]
struct KnownTable {
    known: Vec<Known>,
}

/// Where a number is in an output.
#[derive(Clone, Debug)]
pub enum Locator {
    /// What the group `value`, or the first one, of a regular expression captures. Where there is a
    /// group `unit`, times become microseconds and rates Mbit/s.
    Pattern(Regex),
    /// A path of fields and indices into JSON, as jq writes it, and the same as a JSON pointer.
    Path(String, String),
    /// The only number that has a line to itself.
    Alone,
}

/// The number that counts in what a command prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Measurand {
    /// Where it stands.
    pub(crate) what: String,
    /// Whether more or less of it is better.
    #[serde(serialize_with = "better")]
    #[schemars(with = "String")]
    pub better: Sense,
    /// The line that it was found in.
    pub(crate) line: String,
    /// Its value there.
    pub(crate) value: f64,
    #[serde(skip)]
    locator: Locator,
}

fn better<S: serde::Serializer>(of: &Sense, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(of.in_words())
}

impl FromStr for Locator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(pointer) = pointer(text) {
            return Ok(Self::Path(text.into(), pointer));
        }
        let pattern = Regex::new(text).map_err(|why| why.to_string())?;
        if pattern.captures_len() < 2 {
            return Err(
                "put the number into a group, as in `p99: ([0-9.]+)`; a path into JSON has \
                        fields and indices alone, as in `.jobs[0].read.lat_ns.mean`"
                    .into(),
            );
        }
        Ok(Self::Pattern(pattern))
    }
}

/// The JSON pointer of a path such as `.jobs[0].percentile["99.000000"]`.
fn pointer(path: &str) -> Option<String> {
    let mut pointer = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (step, after) = if let Some(quoted) = rest.strip_prefix("[\"") {
            quoted.split_once("\"]")?
        } else if let Some(index) = rest.strip_prefix('[') {
            let (index, after) = index.split_once(']')?;
            index.parse::<usize>().ok()?;
            (index, after)
        } else {
            let field = rest.strip_prefix('.')?;
            let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
            field.split_at(field.find(|c| !is_of_name(c)).unwrap_or(field.len()))
        };
        if step.is_empty() {
            return None;
        }
        pointer += &format!("/{}", step.replace('~', "~0").replace('/', "~1"));
        rest = after;
    }
    (!pointer.is_empty()).then_some(pointer)
}

impl Locator {
    fn count(&self, output: &str) -> usize {
        match self {
            Self::Pattern(pattern) => pattern.find_iter(output).count(),
            _ => usize::from(self.find(output).is_ok()),
        }
    }

    fn find(&self, output: &str) -> Result<(f64, String), String> {
        match self {
            Self::Pattern(pattern) => {
                let mut matches = pattern.captures_iter(output);
                match (matches.next(), matches.count()) {
                    (Some(one), 0) => captured(&one, output),
                    (None, _) => Err(format!("nothing that `{pattern}` matches")),
                    (_, more) => Err(format!("{} places that `{pattern}` matches", more + 1)),
                }
            }
            Self::Path(path, pointer) => {
                let value = json(output).ok_or("no JSON")?;
                let number = value.pointer(pointer).and_then(Value::as_f64);
                let number = number.ok_or_else(|| format!("JSON without a number at {path}"))?;
                Ok((number, format!("{path} = {number}")))
            }
            Self::Alone => {
                let number = |line: &str| Some((line.parse().ok()?, line.to_owned()));
                let alone = lines(output).filter_map(number);
                let mut alone = alone.filter(|(value, _): &(f64, _)| value.is_finite());
                match (alone.next(), alone.count()) {
                    (Some(one), 0) => Ok(one),
                    (None, _) => Err("no number with a line to itself".into()),
                    (_, more) => Err(format!("{} numbers, each on its own line", more + 1)),
                }
            }
        }
    }
}

fn captured(of: &Captures<'_>, output: &str) -> Result<(f64, String), String> {
    let group = of.name("value").or_else(|| of.get(1)).ok_or("nothing in the group")?;
    let number: f64 =
        group.as_str().parse().map_err(|_| format!("`{}`, which is no number", group.as_str()))?;
    let unit = of.name("unit").map_or(Ok(1.0), |unit| scale(unit.as_str()))?;
    let (before, after) = output.split_at(group.start());
    let begin = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let end = after.find(['\n', '\r']).map_or(output.len(), |at| before.len() + at);
    Ok((number * unit, output[begin..end].trim().to_owned()))
}

/// What a unit is in microseconds or in Mbit/s: programs change it with the size of the value.
fn scale(unit: &str) -> Result<f64, String> {
    Ok(match unit {
        "ns" | "nsec" => 1e-3,
        "us" | "usec" => 1.0,
        "ms" | "msec" => 1e3,
        "s" | "sec" => 1e6,
        "m" => 6e7,
        "bits" => 1e-6,
        "Kbits" => 1e-3,
        "Mbits" => 1.0,
        "Gbits" => 1e3,
        "Tbits" => 1e6,
        other => return Err(format!("`{other}`, which is no unit of times or rates")),
    })
}

fn lines(output: &str) -> impl Iterator<Item = &str> {
    output.split(['\n', '\r']).map(str::trim)
}

/// The first JSON object or array that begins a line; programs may say something before it.
fn json(output: &str) -> Option<Value> {
    let starts = output.match_indices(['{', '[']).map(|(at, _)| at);
    let mut starts = starts.filter(|at| matches!(output[..*at].chars().last(), None | Some('\n')));
    starts.find_map(|at| serde_json::Deserializer::from_str(&output[at..]).into_iter().next()?.ok())
}

fn programs(command: &str) -> impl Iterator<Item = &str> {
    let words = command.split(|c: char| c.is_whitespace() || ";|&()<>'\"`$".contains(c));
    words.map(|word| word.rsplit('/').next().unwrap_or(word))
}

impl Measurand {
    /// Chooses by the first output of `command`: what the user has named, what is known of the
    /// program, or a number that has a line to itself.
    pub(crate) fn choose(
        command: &str,
        output: &str,
        named: Option<&Locator>,
        asked: Option<Sense>,
    ) -> Result<Self, String> {
        let usual = asked.unwrap_or(Sense::Min);
        if let Some(locator) = named {
            return Self::new("by --metric", usual, locator.clone(), output);
        }
        let table: KnownTable = toml::from_str(include_str!("known.toml"))
            .map_err(|why| format!("the table of programs cannot be read: {why}"))?;
        let is_named = |known: &Known| programs(command).any(|program| program == known.program);
        let named = table.known.into_iter().filter(is_named);
        let read = |known: Known| Ok((known.locator.parse()?, known));
        let mut rows = named.map(read).collect::<Result<Vec<(Locator, Known)>, String>>()?;
        // Of each program the first row that its output has.
        rows.retain(|(locator, _)| locator.count(output) > 0);
        rows.dedup_by(|(_, next), (_, before)| next.program == before.program);
        let (locator, known) = match &rows[..] {
            [] => return Self::new("alone on its line", usual, Locator::Alone, output),
            [row] => row,
            _ => return Err("figures of several programs".into()),
        };
        let (better, what) =
            (known.better.in_words(), format!("{}: {}", known.program, known.what));
        if asked.is_some_and(|asked| asked != known.better) {
            return Err(format!("a figure of {what}, of which {better} is better"));
        }
        if locator.count(output) > 1 {
            return Err(format!("several figures of {what}"));
        }
        Self::new(&what, known.better, locator.clone(), output)
    }

    fn new(what: &str, better: Sense, locator: Locator, output: &str) -> Result<Self, String> {
        let (value, line) = locator.find(output)?;
        Ok(Self { what: what.into(), better, line, value, locator })
    }

    pub(crate) fn read(&self, output: &str) -> Result<f64, String> {
        self.locator.find(output).map(|(value, _)| value)
    }

    pub fn in_words(&self) -> String {
        let Self { what, better, line, value, .. } = self;
        format!("what counts is {value} ({what}; {} is better), of: {line}", better.in_words())
    }
}

#[cfg(test)]
mod tests;
