//! What is measured: `xtask/benches.toml`, read and multiplied out.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::figure::Goal;
use crate::repo;

/// Where the benches are, below the root.
pub(super) const FILE: &str = "xtask/benches.toml";

/// All benches, by name.
pub(super) type Measurements = BTreeMap<String, Measurement>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measurement {
    pub about: String,
    /// What follows `cargo build --release`.
    #[serde(default)]
    pub build: Vec<String>,
    /// Variables with their defaults, which `--set` changes.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
}

/// Commands, and what is kept of them: figures, or a record of the last one's JSON.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Case {
    /// The case is made once for each combination of these values.
    #[serde(default)]
    each: BTreeMap<String, Vec<String>>,
    /// And once for each of these sets of values.
    #[serde(default)]
    rows: Vec<BTreeMap<String, String>>,
    /// Run by bash; a command sees in `{/N/PATH}` what an earlier one printed.
    pub run: Vec<String>,
    #[serde(default)]
    pub figures: Vec<FigurePlan>,
    /// Under which name its JSON is kept in the file of the bench; the whole file, if it is empty.
    pub record: Option<String>,
    /// What it prints is the same in each run, so that one is sufficient.
    #[serde(default)]
    pub is_exact: bool,
}

/// A figure that is made of what the commands printed.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigurePlan {
    pub name: String,
    pub unit: String,
    /// A formula of paths.
    pub value: String,
    pub goal: Option<Goal>,
}

pub(super) fn read() -> Result<Measurements> {
    let text = fs::read_to_string(repo::root().join(FILE)).context(FILE)?;
    toml::from_str(&text).context(FILE)
}

impl Measurement {
    /// All cases with their values, and with those of `set`.
    pub(super) fn all(&self, set: &BTreeMap<String, String>) -> Vec<Case> {
        let base: BTreeMap<_, _> = self.set.clone().into_iter().chain(set.clone()).collect();
        self.cases.iter().flat_map(|case| case.all(&base)).collect()
    }
}

impl Case {
    fn all(&self, base: &BTreeMap<String, String>) -> Vec<Self> {
        let rows = if self.rows.is_empty() { vec![BTreeMap::new()] } else { self.rows.clone() };
        let with = |row: BTreeMap<_, _>| base.clone().into_iter().chain(row).collect();
        let mut all: Vec<BTreeMap<String, String>> = rows.into_iter().map(with).collect();
        for (name, values) in &self.each {
            let with = |before: &BTreeMap<String, String>| {
                let one = |value: &String| {
                    let mut row = before.clone();
                    row.insert(name.clone(), value.clone());
                    row
                };
                values.iter().map(one).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        all.iter().map(|values| self.with(values)).collect()
    }

    /// The case with values in place of `{NAME}`.
    fn with(&self, values: &BTreeMap<String, String>) -> Self {
        let fill = |text: &mut String| {
            for (name, value) in values {
                *text = text.replace(&format!("{{{name}}}"), value);
            }
        };
        let mut case = self.clone();
        case.run.iter_mut().chain(&mut case.record).for_each(fill);
        for FigurePlan { name, unit, value, .. } in &mut case.figures {
            [name, unit, value].into_iter().for_each(fill);
        }
        case
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_made_for_each_value() {
        let text = r#"about = "a"
            set = { n = "1", more = "x" }
            [[case]]
            each = { size = ["60", "66"], way = ["one"] }
            rows = [{ n = "7" }, {}]
            run = ["count {n} {size} {way} {more} {/0/a} ${b}"]
            record = "{size}""#;
        let bench: Measurement = toml::from_str(text).unwrap();
        let cases = bench.all(&BTreeMap::from([("more".into(), "y".into())]));
        let runs: Vec<&str> = cases.iter().map(|case| case.run[0].as_str()).collect();
        let expected = ["7 60", "7 66", "1 60", "1 66"];
        assert_eq!(runs, expected.map(|run| format!("count {run} one y {{/0/a}} ${{b}}")));
        assert_eq!(cases[1].record.as_deref(), Some("66"));
    }

    #[test]
    fn each_case_of_the_file_keeps_something() {
        for (name, bench) in read().unwrap() {
            for case in bench.all(&BTreeMap::new()) {
                assert!(case.figures.is_empty() == case.record.is_some(), "{name}: {:?}", case.run);
            }
        }
    }
}
