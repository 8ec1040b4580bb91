//! The NAS Parallel Benchmarks over our NIC, as Tables IV and V of the paper have them.
//!
//! The programs are the user's: NPB is not a part of this repository, and whoever has it built says
//! where it is. Each says how long it took, without its launch, and whether its result is right.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::format::{list, number};
use crate::{repo, shell};

/// The programs, and the class of each in the paper, where 16 processes ran on two nodes: seconds
/// under `SETTINGS` (Table IV), and interrupts, where it says (Table V).
const PROGRAMS: [Paper; 6] = [
    paper(
        "is",
        "C",
        [32.75, 37.03, 30.51, 31.96],
        Some([86_400.0, 1_930_000.0, 100_500.0, 101_600.0]),
    ),
    paper("ft", "B", [24.24, 24.86, 24.21, 24.20], None),
    paper("cg", "C", [90.04, 91.50, 90.76, 90.70], None),
    paper("mg", "C", [43.91, 43.63, 43.75, 43.72], None),
    paper("ep", "C", [31.30, 31.45, 31.49, 31.36], None),
    paper("lu", "C", [203.8, 202.4, 203.2, 206.6], None),
];

/// What is compared, with the first; the paper calls them timeout, disabled, Open-MX and stream.
const SETTINGS: [&str; 4] = ["delay:75", "disabled", "marked:75", "stream:75"];

struct Paper {
    program: &'static str,
    class: &'static str,
    seconds: [f64; 4],
    interrupts: Option<[f64; 4]>,
}

const fn paper(
    program: &'static str,
    class: &'static str,
    seconds: [f64; 4],
    interrupts: Option<[f64; 4]>,
) -> Paper {
    Paper { program, class, seconds, interrupts }
}

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where the programs are: is.A.x, ft.A.x, cg.A.x, mg.A.x, ep.A.x and lu.A.x of NPB-MPI
    #[arg(long)]
    dir: PathBuf,
    /// The classes that are run, one after the other
    #[arg(long, default_value = "A", value_delimiter = ',')]
    class: Vec<String>,
    /// How many ranks, on two hosts
    #[arg(short = 'n', long, default_value_t = 2)]
    ranks: u16,
    /// How often each setting has its turn
    #[arg(long, default_value_t = 5)]
    repeat: u32,
    /// These programs alone
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    only: Vec<String>,
    /// Where to write instead of docs/results/npb.json
    #[arg(long)]
    to: Option<PathBuf>,
}

/// Runs the programs and writes what they said.
pub(crate) fn run(options: &Options) -> Result<()> {
    for name in &options.only {
        let is_known = PROGRAMS.iter().any(|known| known.program == name);
        ensure!(is_known, "there is no program {name}; there are is, ft, cg, mg, ep and lu");
    }
    // One by one, as docs/mpi.md has it: together they would be compiled apart from other builds.
    for package in ["earmark", "earmark-provider"] {
        shell::run(&mut shell::cargo(["build", "--release", "--package", package]))?;
    }
    let earmark = repo::target_directory()?.join("release/earmark");
    let mut programs = Vec::new();
    let mut environment = Value::Null;
    for class in &options.class {
        for known in &PROGRAMS {
            if !options.only.is_empty() && !options.only.iter().any(|name| name == known.program) {
                continue;
            }
            let mut program = one(&earmark, options, known, class)?;
            environment = program["environment"].take();
            programs.push(program);
        }
    }
    if environment.is_object() {
        // Where things were on this machine is of no use to others.
        let Options { class, repeat, ranks, .. } = options;
        let class = class.join(",");
        let command =
            format!("cargo xtask npb --dir DIR -n {ranks} --class {class} --repeat {repeat}");
        environment["command"] = command.into();
    }
    let outcome = json!({ "schema_version": 1, "ranks": options.ranks, "programs": programs,
                          "environment": environment });
    let path = options.to.clone().unwrap_or_else(|| repo::root().join("docs/results/npb.json"));
    fs::write(&path, serde_json::to_string_pretty(&outcome)? + "\n")
        .with_context(|| format!("write {}; choose another place with --to", path.display()))?;
    println!("wrote {}; the page of it: cargo xtask results --write-only", path.display());
    println!("{}", page(&outcome));
    Ok(())
}

/// Runs one program under all settings, in turns.
fn one(earmark: &Path, options: &Options, known: &Paper, class: &str) -> Result<Value> {
    let name = format!("{}.{class}", known.program);
    let program = options.dir.join(format!("{name}.x"));
    ensure!(
        program.exists(),
        "there is no {}; build NPB with the MPI on $PATH, or name another directory with --dir",
        program.display()
    );
    println!("{name}, {} times under each of {}", options.repeat, SETTINGS.join(", "));
    let counted = repo::target_directory()?.join("npb-counted.json");
    let (ranks, repeat) = (options.ranks.to_string(), options.repeat.to_string());
    let mut command = Command::new(earmark);
    command.args(["mpirun", "-n", &ranks, "--compare", &SETTINGS.join(","), "--repeat", &repeat]);
    command.arg("--json").arg(&counted).arg("--").arg(&program);
    let said = runs(&shell::output(&mut command)?);
    let all = SETTINGS.len() * options.repeat as usize;
    ensure!(said.len() == all, "{name} told {} times of {all} how long it took", said.len());
    let counted: Value = serde_json::from_str(&fs::read_to_string(&counted)?)?;
    let mut cells = Vec::new();
    for (turn, result) in list(&counted, "results").enumerate() {
        let mine: Vec<Said> = said.iter().skip(turn).step_by(SETTINGS.len()).copied().collect();
        let mut seconds: Vec<f64> = mine.iter().map(|said| said.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        cells.push(json!({
            "setting": result["setting"], "verified": mine.iter().all(|said| said.verified),
            "seconds": median(&seconds), "seconds_of_runs": seconds,
            "interrupts": result["interrupts"], "frames": result["frames"],
            "marked": result["marked"], "wall_s": result["wall_s"],
        }));
    }
    Ok(json!({ "program": known.program, "class": class, "mpi": counted["mpi"], "cells": cells,
               "environment": counted["environment"] }))
}

/// What a run says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Said {
    seconds: f64,
    verified: bool,
}

/// What each of several runs has said, in their order: first the time, then whether it is right.
fn runs(text: &str) -> Vec<Said> {
    let mut runs: Vec<Said> = Vec::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once('=') else { continue };
        match (name.trim(), value.trim()) {
            ("Time in seconds", value) => {
                let seconds = value.parse().unwrap_or(f64::NAN);
                runs.push(Said { seconds, verified: false });
            }
            ("Verification", "SUCCESSFUL") => {
                if let Some(run) = runs.last_mut() {
                    run.verified = true;
                }
            }
            _ => {}
        }
    }
    runs
}

/// The median of numbers that are sorted.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    } else {
        sorted[middle]
    }
}

const HEAD: &str = "\n## NAS Parallel Benchmarks\n\n\
    NPB-MPI over our NIC with `earmark mpirun`, on two hosts of one machine. Times are those that\n\
    the programs say; interrupts are of both hosts and the whole run. Percentages are of `delay:75`.\n\
    Beside them are those of the paper, Tables IV and V, from 16 processes on two nodes with larger\n\
    classes.\n\n\
    | program | setting | seconds | of delay:75 | paper | interrupts | of delay:75 | paper | right |\n\
    |---|---|---|---|---|---|---|---|---|\n";

/// The page's section.
pub(super) fn page(outcome: &Value) -> String {
    let mut text = String::from(HEAD);
    for program in list(outcome, "programs") {
        let name = program["program"].as_str().unwrap_or_default();
        let known = PROGRAMS.iter().find(|known| known.program == name);
        let base = &program["cells"][0];
        for (number, cell) in list(program, "cells").enumerate() {
            text += &row(program, base, cell, known.map(|known| (known, number)));
        }
    }
    let environment = &outcome["environment"];
    if environment.is_object() {
        text += &super::format::environment(environment);
    }
    text
}

fn row(program: &Value, base: &Value, cell: &Value, paper: Option<(&Paper, usize)>) -> String {
    let of = |figure: &str| {
        let (this, base) = (cell[figure].as_f64(), base[figure].as_f64());
        percent(this.zip(base.filter(|base| *base > 0.0)))
    };
    let theirs = |of: fn(&Paper) -> Option<[f64; 4]>| {
        let figures = paper.and_then(|(paper, number)| Some((of(paper)?, number)));
        percent(figures.and_then(|(figures, number)| Some((*figures.get(number)?, figures[0]))))
    };
    let class = paper.map_or("", |(paper, _)| paper.class);
    let seconds: Vec<f64> = list(cell, "seconds_of_runs").filter_map(Value::as_f64).collect();
    let spread = match seconds[..] {
        [least, .., most] => format!(" ({least:.2}-{most:.2})"),
        _ => String::new(),
    };
    let seconds = number(&cell["seconds"], 2);
    format!(
        "| {}.{} | `{}` | {seconds}{spread} | {} | {} ({class}) | {} | {} | {} | {} |\n",
        program["program"].as_str().unwrap_or_default(),
        program["class"].as_str().unwrap_or_default(),
        cell["setting"].as_str().unwrap_or_default(),
        of("seconds"),
        theirs(|paper| Some(paper.seconds)),
        number(&cell["interrupts"], 0),
        of("interrupts"),
        theirs(|paper| paper.interrupts),
        if cell["verified"] == json!(true) { "yes" } else { "NO" },
    )
}

fn percent(pair: Option<(f64, f64)>) -> String {
    pair.map_or_else(|| "-".to_owned(), |(this, base)| format!("{:.0} %", 100.0 * this / base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_told_apart() {
        let text = " Verification being performed\n Time in seconds =            0.50\n \
                    Verification    =       SUCCESSFUL\n Time in seconds = 1.5\n Verification    = \
                    UNSUCCESSFUL\n";
        let [one, other] = runs(text)[..] else { panic!("two runs") };
        assert_eq!(one, Said { seconds: 0.5, verified: true });
        assert_eq!(other, Said { seconds: 1.5, verified: false });
    }

    #[test]
    fn cells_stand_beside_those_of_the_paper() {
        let cell = |setting: &str, seconds: f64, interrupts: u64| {
            json!({"setting": setting, "seconds": seconds, "seconds_of_runs": [1.0, seconds, 9.0],
                   "interrupts": interrupts, "verified": true})
        };
        let cells = [cell("delay:75", 2.0, 100), cell("disabled", 3.0, 1000)];
        let program = json!({"program": "is", "class": "A", "cells": cells});
        let page = page(&json!({ "programs": [program] }));
        let row = "| is.A | `disabled` | 3.00 (1.00-9.00) | 150 % | 113 % (C) | 1000 | 1000 % | 2234 % | \
                   yes |";
        assert!(page.contains(row), "{page}");
    }

    #[test]
    fn median_of_an_even_number_lies_between_two() {
        assert_eq!((median(&[1.0, 2.0, 9.0]), median(&[1.0, 2.0])), (2.0, 1.5));
    }
}
