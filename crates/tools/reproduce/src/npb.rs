//! The NAS Parallel Benchmarks: as skeletons on modelled hosts, or as `cargo xtask bench npb` has
//! measured them on hosts of this machine, in a file that is read here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use bench::parallel;
use model::machine::Machine;
use model::npb::NpbRun;
use serde::Deserialize;

use crate::claim::Null;

/// No file of results has more bytes.
const LARGEST: u64 = 1 << 20;

/// What `cargo xtask bench npb` has measured.
#[derive(Debug, Deserialize)]
pub struct Npb {
    programs: Vec<NpbProgram>,
}

#[derive(Debug, Deserialize)]
struct NpbProgram {
    program: String,
    class: String,
    cells: Vec<Cell>,
}

#[derive(Debug, Deserialize)]
struct Cell {
    setting: String,
    seconds: f64,
    interrupts: f64,
}

/// A figure of a program under one setting, divided by that under another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NpbRatio {
    program: String,
    /// Of the modelled program; a measured one has that of its file.
    #[serde(default = "class_c")]
    class: String,
    figure: NpbFigure,
    of: String,
    over: String,
}

fn class_c() -> String {
    "C".into()
}

/// The machine of the paper that has these tables.
const MACHINE: &str = "clovertown";
/// The seed of the modelled runs.
const SEED: u64 = 1;

/// A program, its class, and a setting.
type ModelCase<'a> = (&'a str, &'a str, &'a str);

/// Skeletons on modelled hosts, each under the settings that some ratios ask for.
#[derive(Debug)]
pub(crate) struct Modelled<'a>(BTreeMap<ModelCase<'a>, NpbRun>);

impl<'a> Modelled<'a> {
    /// Runs what `ratios` divide, side by side.
    pub(crate) fn of(ratios: impl Iterator<Item = &'a NpbRatio>) -> Result<Self> {
        let cases = ratios.flat_map(|it| {
            [&it.of, &it.over].map(|setting| (&*it.program, &*it.class, &**setting))
        });
        let cases: BTreeSet<ModelCase<'a>> = cases.collect();
        let machine = Machine::named(MACHINE).context("the model has the paper's machine")?;
        let cases: Vec<_> = cases.into_iter().collect();
        let runs = parallel::map(&cases, |case| Ok((*case, run(*case, &machine)?)))?;
        Ok(Self(runs.into_iter().collect::<Result<_>>()?))
    }

    /// The ratio; none if its programs were not run.
    pub(crate) fn value(&self, ratio: &NpbRatio) -> Option<f64> {
        let figure = |setting: &str| {
            let run = self.0.get(&(&*ratio.program, &*ratio.class, setting))?;
            Some(match ratio.figure {
                NpbFigure::Seconds => run.seconds,
                NpbFigure::Interrupts => run.interrupts,
            })
        };
        Some(figure(&ratio.of)? / figure(&ratio.over)?)
    }
}

fn run(case: ModelCase<'_>, machine: &Machine) -> Result<NpbRun> {
    let (program, class, setting) = case;
    model::npb::run(program.parse()?, class.parse()?, machine, setting.parse()?, SEED)
        .with_context(|| format!("{program}.{class} under {setting}"))
}

/// What is divided.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NpbFigure {
    /// How long the program took.
    Seconds,
    /// Interrupts of all hosts.
    Interrupts,
}

impl NpbRatio {
    /// Of two times or counts that no setting changes.
    pub(crate) const NULL: Null = Null { value: 1.0, resolution: 0.01 };
}

impl Npb {
    /// The text of the file.
    pub fn text(path: &Path) -> Result<String> {
        sys::files::read_text(path, LARGEST).with_context(|| doing(path))
    }

    /// What the file at `path` says, whose text this is.
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        serde_json::from_str(text).with_context(|| doing(path))
    }

    /// The ratio, and of which class the program was; none if it was not run.
    pub(crate) fn value(&self, ratio: &NpbRatio) -> Option<(f64, &str)> {
        let program = self.programs.iter().find(|it| it.program == ratio.program)?;
        let figure = |setting: &str| {
            let cell = program.cells.iter().find(|cell| cell.setting == setting)?;
            Some(match ratio.figure {
                NpbFigure::Seconds => cell.seconds,
                NpbFigure::Interrupts => cell.interrupts,
            })
        };
        Some((figure(&ratio.of)? / figure(&ratio.over)?, &program.class))
    }
}

fn doing(path: &Path) -> String {
    format!("read {}, which `cargo xtask bench npb` writes", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_that_of_two_settings_of_one_program() {
        let cell = |setting: &str, seconds: f64, interrupts: f64| {
            format!(r#"{{"setting":"{setting}","seconds":{seconds},"interrupts":{interrupts}}}"#)
        };
        let cells = [cell("delay:75", 2.0, 100.0), cell("disabled", 3.0, 2200.0)].join(",");
        let text = format!(r#"{{"programs":[{{"program":"is","class":"A","cells":[{cells}]}}]}}"#);
        let npb: Npb = serde_json::from_str(&text).unwrap();
        let ratio = |program: &str, figure| NpbRatio {
            program: program.into(),
            class: class_c(),
            figure,
            of: "disabled".into(),
            over: "delay:75".into(),
        };
        assert_eq!(npb.value(&ratio("is", NpbFigure::Interrupts)), Some((22.0, "A")));
        assert_eq!(npb.value(&ratio("is", NpbFigure::Seconds)), Some((1.5, "A")));
        assert_eq!(npb.value(&ratio("ft", NpbFigure::Seconds)), None);
    }
}
