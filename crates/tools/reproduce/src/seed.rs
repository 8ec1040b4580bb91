//! A document as data: its machine, its measurements, and its numbers.
//!
//! One file for each in `seeds/`. What a file says of a number, its tolerance among it, is there
//! before anything runs.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use bench::experiment::Experiment;
use bench::options::{ExperimentOptions, NicOptions};
use bench::scenario::Run;
use bench::world::WorldKind;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::claim::{Claim, Tolerance};
use crate::formula::Formula;
use crate::npb::NpbRatio;

/// Those that come with Earmark.
const BUILT_IN: [(&str, &str); 4] = [
    ("e1000", include_str!("../seeds/e1000.toml")),
    ("bge", include_str!("../seeds/bge.toml")),
    ("odroid", include_str!("../seeds/odroid.toml")),
    ("openmx", include_str!("../seeds/openmx.toml")),
];

/// With `--quick` a run lasts a quarter of its time, and no less than this, in seconds.
const SHORTEST_S: f64 = 0.01;

/// A document, as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// The name on the command line; that of the file.
    #[serde(skip)]
    pub name: String,
    /// One line on what was found.
    pub title: String,
    /// Author, title, date.
    pub source: String,
    /// The world that its parts are played in.
    #[serde(default = "virtual_world")]
    pub world: WorldKind,
    /// The machine: options of the NIC, the cable and the hosts.
    #[serde(rename = "constant")]
    pub constants: Vec<Constant>,
    /// Its tables and figures.
    #[serde(rename = "part")]
    pub parts: Vec<DocumentPart>,
}

const fn virtual_world() -> WorldKind {
    WorldKind::Virtual
}

/// An option of the machine that all runs of a document have in common.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// The flag of `earmark bench`, without its dashes.
    pub option: String,
    /// The value, as a scenario writes it.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
    /// Where from exactly, or why.
    pub why: String,
}

/// A constant of some runs of a part.
#[derive(Clone, Debug, Deserialize)]
pub struct PartConstant {
    /// The runs; all of the part if there are none.
    #[serde(default)]
    pub runs: Vec<String>,
    /// The constant itself, as whole seeds have them.
    #[serde(flatten)]
    pub constant: Constant,
}

/// Where a constant comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The document states it.
    Stated,
    /// It was measured, here or there, in another experiment.
    Measured,
    /// It was set so that one number of the document comes out; that number is no prediction.
    Set,
    /// No source states it; a usual value.
    Assumed,
}

/// A table, a figure, or a paragraph with numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentPart {
    /// The name on the command line, after that of the document.
    pub name: String,
    /// The heading of its chapter.
    pub title: String,
    /// What was measured, and how it is here.
    pub about: String,
    /// The world that it is played in, if that is not the document's.
    #[serde(default)]
    pub world: Option<WorldKind>,
    /// Constants of its runs alone, or of some of them.
    #[serde(default, rename = "constant")]
    pub constants: Vec<PartConstant>,
    /// The setting that stands for all others where no setting changes anything.
    #[serde(default)]
    pub nothing: Option<String>,
    /// What is run for it, by name.
    #[serde(default, rename = "run")]
    pub runs: BTreeMap<String, PartRun>,
    /// What the document says.
    #[serde(rename = "number")]
    pub numbers: Vec<Number>,
    /// A picture over the number of clients, or over time.
    #[serde(default)]
    pub curve: Option<Curve>,
}

/// One experiment of a part. Its keys are the flags of `earmark bench --world virtual`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartRun {
    experiment: Experiment,
    #[serde(default)]
    nic: Table,
    #[serde(default)]
    options: Table,
}

/// Which picture a run makes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Name of the run.
    pub run: String,
    /// What is drawn.
    pub of: CurveKind,
}

/// What is drawn of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CurveKind {
    /// Answers a second over the number of clients, a curve for each setting.
    Clients,
    /// Round trip, halves and offset over time.
    Time,
}

/// A number of the document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, try_from = "NumberText")]
pub struct Number {
    /// What it is of.
    pub what: String,
    /// The unit of both values.
    pub unit: String,
    /// What the document says of it.
    pub claim: Claim,
    /// How ours is made.
    pub ours: Ours,
    /// The reason of a difference, or what it rests on; may be empty.
    pub note: String,
}

/// How our figure beside a number is made.
#[derive(Clone, Debug)]
pub enum Ours {
    /// From the runs, to be compared.
    Predicted(Formula),
    /// From the runs; a constant was set to make it agree, so that it proves nothing.
    Set(Formula),
    /// From what `cargo xtask bench npb` has measured, if its file is given.
    Npb(NpbRatio),
    /// Not at all, and why.
    Cannot(String),
}

impl Ours {
    /// The runs and settings of its formula.
    fn needs(&self) -> Vec<(String, Option<String>)> {
        match self {
            Self::Predicted(formula) | Self::Set(formula) => formula.needs(),
            Self::Npb(_) | Self::Cannot(_) => Vec::new(),
        }
    }
}

/// A [`Number`] as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NumberText {
    what: String,
    unit: String,
    seed: Option<Stated>,
    above: Option<f64>,
    below: Option<f64>,
    percent: Option<f64>,
    within: Option<f64>,
    ours: Option<Formula>,
    npb: Option<NpbRatio>,
    #[serde(default)]
    sets_a_constant: bool,
    cannot: Option<String>,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number, or a smallest and a largest one")]
enum Stated {
    One(f64),
    Range([f64; 2]),
}

impl TryFrom<NumberText> for Number {
    type Error = String;

    fn try_from(text: NumberText) -> Result<Self, String> {
        let what = text.what;
        let tolerance = match (text.percent, text.within) {
            (Some(percent), None) => Some(Tolerance::Percent(percent)),
            (None, Some(within)) => Some(Tolerance::Within(within)),
            (None, None) => None,
            (Some(_), Some(_)) => return Err(format!("{what}: percent and within, which?")),
        };
        let claim = match (text.seed, text.above, text.below, tolerance) {
            (Some(Stated::One(value)), None, None, Some(tolerance)) => {
                Claim::Value { value, tolerance }
            }
            (Some(Stated::Range([low, high])), None, None, None) => Claim::Between(low, high),
            (None, Some(bound), None, None) => Claim::Above(bound),
            (None, None, Some(bound), None) => Claim::Below(bound),
            _ => {
                return Err(format!(
                    "{what}: give a seed with percent or within, a seed of two numbers, above, or below"
                ));
            }
        };
        let ours = match (text.ours, text.npb, text.cannot, text.sets_a_constant) {
            (Some(formula), None, None, false) => Ours::Predicted(formula),
            (Some(formula), None, None, true) => Ours::Set(formula),
            (None, Some(ratio), None, false) => Ours::Npb(ratio),
            (None, None, Some(why), false) => Ours::Cannot(why),
            _ => return Err(format!("{what}: give ours, or why it cannot be made")),
        };
        Ok(Self { what, unit: text.unit, claim, ours, note: text.note })
    }
}

impl Seed {
    /// All of them.
    pub fn all() -> Result<Vec<Self>> {
        let read = |(name, text)| Self::parse(name, text);
        BUILT_IN.into_iter().map(read).collect()
    }

    /// Names of the documents.
    pub fn documents() -> impl Iterator<Item = &'static str> {
        BUILT_IN.into_iter().map(|(name, _)| name)
    }

    /// Those of `wanted`, a document or `DOCUMENT/PART`; without it all.
    pub fn chosen(wanted: Option<&str>) -> Result<Vec<Self>> {
        let mut seeds = Self::all()?;
        let Some(wanted) = wanted else { return Ok(seeds) };
        let (document, part) = match wanted.split_once('/') {
            Some((document, part)) => (document, Some(part)),
            None => (wanted, None),
        };
        seeds.retain(|seed| seed.name == document);
        for seed in &mut seeds {
            seed.parts.retain(|it| part.is_none_or(|part| it.name == part));
        }
        seeds.retain(|seed| !seed.parts.is_empty());
        let names: Vec<_> = Self::documents().collect();
        ensure!(
            !seeds.is_empty(),
            "there is no `{wanted}` to reproduce; there are {}, and `--list` lists their parts",
            names.join(", ")
        );
        Ok(seeds)
    }

    /// What sets constants of the document, alone: its numbers, and the settings that they need.
    #[must_use]
    pub fn calibration(mut self) -> Self {
        for part in &mut self.parts {
            part.numbers.retain(|number| matches!(number.ours, Ours::Set(_)));
            let numbers = part.numbers.iter();
            let needed: Vec<_> = numbers.flat_map(|number| number.ours.needs()).collect();
            for (name, run) in &mut part.runs {
                let is_needed = |setting: &Value| {
                    needed.iter().any(|(of, it)| of == name && it.as_deref() == setting.as_str())
                };
                if let Some(Value::Array(settings)) = run.options.get_mut("compare") {
                    settings.retain(is_needed);
                }
            }
            part.runs.retain(|name, _| needed.iter().any(|(of, _)| of == name));
        }
        self.parts.retain(|part| !part.numbers.is_empty());
        self
    }

    /// Changes the machine of all runs, by what goes behind its name.
    pub(crate) fn change_machine(&mut self, changes: &str) {
        let of_runs = self.parts.iter_mut().flat_map(|part| part.runs.values_mut());
        let of_runs = of_runs.filter_map(|run| run.nic.get_mut("machine"));
        let constants = self.constants.iter_mut().filter(|it| it.option == "machine");
        for machine in constants.map(|it| &mut it.value).chain(of_runs) {
            if let Value::String(machine) = machine {
                *machine += &format!(",{changes}");
            }
        }
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let seed: Self = toml::from_str(text).with_context(|| format!("read seeds/{name}.toml"))?;
        let mut seed = Self { name: name.into(), ..seed };
        for part in &mut seed.parts {
            for number in &mut part.numbers {
                let Ours::Predicted(formula) = &mut number.ours else { continue };
                part.nothing.iter().for_each(|setting| formula.with_nothing(setting));
                let what = &number.what;
                ensure!(formula.has_null(), "{name}/{}, {what}: if nothing changed?", part.name);
            }
        }
        for part in &seed.parts {
            for run in part.runs.keys() {
                let _ = seed.run(part, run, false)?;
            }
        }
        Ok(seed)
    }

    /// An experiment of a part, on this machine, and how to type it.
    pub(crate) fn run(
        &self,
        part: &DocumentPart,
        name: &str,
        quick: bool,
    ) -> Result<(Run, String)> {
        let place = || format!("{}/{}, run {name}", self.name, part.name);
        let run = part.runs.get(name).with_context(|| format!("{}: no such run", place()))?;
        let of_run = |it: &&PartConstant| it.runs.is_empty() || it.runs.iter().any(|it| it == name);
        let of_part = part.constants.iter().filter(of_run).map(|it| &it.constant);
        let constants = self.constants.iter().chain(of_part);
        let mut nic: Table = constants.map(|it| (it.option.clone(), it.value.clone())).collect();
        nic.extend(run.nic.clone());
        let mut options = run.options.clone();
        if quick {
            shorten(&mut options);
        }
        let world = part.world.unwrap_or(self.world);
        let command = command(run.experiment, world, &nic, &options);
        let run = Run {
            experiment: run.experiment,
            world: Some(world),
            nic: NicOptions::deserialize(nic).with_context(place)?,
            options: ExperimentOptions::deserialize(options).with_context(place)?,
        };
        let uses = [run.uses(None)];
        run.nic.check_taken(&uses).and(run.options.check_taken(&uses)).with_context(place)?;
        Ok((run, command))
    }
}

/// A quarter of the time. What happens in a run with a change needs its time.
fn shorten(options: &mut Table) {
    let changes = options.contains_key("change-to");
    if let Some(Value::Float(duration)) = options.get_mut("duration").filter(|_| !changes) {
        *duration = (*duration / 4.0).max(SHORTEST_S);
    }
}

/// The command line of a run.
fn command(experiment: Experiment, world: WorldKind, nic: &Table, options: &Table) -> String {
    let world = if world == WorldKind::Model { "model" } else { "virtual" };
    let mut command = format!("earmark bench {} --world {world}", experiment.name());
    for (key, value) in nic.iter().chain(options) {
        command += &format!(" --{key} {}", word(value));
    }
    command
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains([' ', '&', '<']) => format!("\"{text}\""),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(word).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_can_be_read_and_every_formula_finds_its_run() {
        for seed in Seed::all().unwrap() {
            for part in &seed.parts {
                for number in &part.numbers {
                    let (Ours::Predicted(formula) | Ours::Set(formula)) = &number.ours else {
                        continue;
                    };
                    for run in formula.runs() {
                        let place = format!("{}/{}, {}", seed.name, part.name, number.what);
                        assert!(part.runs.contains_key(run), "{place}: no run {run}");
                    }
                }
                let curve = part.curve.as_ref().map(|curve| &curve.run);
                assert!(curve.is_none_or(|run| part.runs.contains_key(run)), "{}", part.name);
            }
        }
    }

    #[test]
    fn what_a_run_has_of_its_machine_is_a_constant_or_what_the_document_varies() {
        const VARIED: [&str; 6] =
            ["strategy", "link-rate", "nic", "driver-options", "ports", "machine"];
        for seed in Seed::all().unwrap() {
            for part in &seed.parts {
                for (name, run) in &part.runs {
                    let other = run.nic.keys().find(|key| !VARIED.contains(&key.as_str()));
                    assert_eq!(other, None, "{}/{}, run {name}", seed.name, part.name);
                }
                for constant in &part.constants {
                    let known = |name: &String| part.runs.contains_key(name);
                    assert!(constant.runs.iter().all(known), "{}: {constant:?}", part.name);
                }
            }
        }
    }

    #[test]
    fn a_part_is_chosen_by_its_name_and_a_wrong_one_names_those_there_are() {
        let one = Seed::chosen(Some("openmx/table1")).unwrap();
        assert_eq!((one.len(), one[0].parts.len()), (1, 1));
        let error = Seed::chosen(Some("table1")).unwrap_err().to_string();
        assert!(error.contains("`table1`") && error.contains("e1000, bge"), "{error}");
    }

    #[test]
    fn a_number_has_one_claim_and_one_way() {
        let read = |text: &str| toml::from_str::<Number>(&format!("what='w'\nunit='us'\n{text}"));
        assert!(read("seed = 5.0\npercent = 5.0\nours = { of = 'r s p50' }").is_ok());
        assert!(read("above = 1.0\ncannot = 'no such host'").is_ok());
        for wrong in [
            "seed = 5.0\nours = { of = 'r s p50' }",
            "seed = 5.0\npercent = 5.0",
            "above = 1.0\nbelow = 2.0\ncannot = 'why'",
            "above = 1.0\ncannot = 'why'\nours = { of = 'r s p50' }",
            "above = 1.0\nours = { of = 'r s p51' }",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_run_can_be_typed() {
        let seed = Seed::chosen(Some("bge")).unwrap().remove(0);
        let part = &seed.parts[0];
        let name = part.runs.keys().next().unwrap();
        let (_, command) = seed.run(part, name, false).unwrap();
        assert!(command.starts_with("earmark bench memcached --world virtual --"), "{command}");
    }
}
