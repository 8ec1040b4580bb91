//! The NAS Parallel Benchmarks over our NIC, as Tables IV and V of the Open-MX paper have them.
//!
//! NPB is not a part of this repository: its user says where the programs are. Each prints how
//! long it took, without its launch, and whether its result is right. `earmark reproduce --npb`
//! puts what is written here beside the paper's numbers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::record;
use crate::{repo, shell};

/// What is compared; the paper calls them timeout, disabled, Open-MX and stream.
const SETTINGS: [&str; 4] = ["delay:75", "disabled", "marked:75", "stream:75"];

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
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// These programs alone
    #[arg(
        long,
        value_name = "PROGRAM",
        value_delimiter = ',',
        default_value = "is,ft,cg,mg,ep,lu"
    )]
    only: Vec<String>,
    /// Where to write instead of docs/results/npb.json
    #[arg(long)]
    to: Option<PathBuf>,
}

/// Runs the programs and writes what they printed.
pub(crate) fn run(options: &Options) -> Result<()> {
    // One by one, as docs/mpi.md has it: together they would be compiled apart from other builds.
    for package in ["earmark", "earmark-provider"] {
        shell::run(&mut shell::cargo(["build", "--release", "--package", package]))?;
    }
    let target = repo::target_directory()?;
    let mut programs = Vec::new();
    for class in &options.class {
        for name in &options.only {
            programs.push(measure(&target, options, name, class)?);
        }
    }
    let outcome = json!({ "schema_version": 1, "ranks": options.ranks, "programs": programs });
    let text = record::text(&record::shortened(&outcome));
    let path = options.to.clone().unwrap_or_else(|| repo::root().join("docs/results/npb.json"));
    fs::write(&path, &text)
        .with_context(|| format!("write {}; choose another place with --to", path.display()))?;
    println!("{text}\nwritten to {}", path.display());
    Ok(())
}

/// Runs one program under all settings, in turns.
fn measure(target: &Path, options: &Options, name: &str, class: &str) -> Result<Value> {
    let program = options.dir.join(format!("{name}.{class}.x"));
    ensure!(
        program.exists(),
        "there is no {}; build NPB with the MPI on $PATH, or name another directory with --dir",
        program.display()
    );
    println!("{name}.{class}, {} times under each of {}", options.repeat, SETTINGS.join(", "));
    let counts = target.join("npb-counts.json");
    let (ranks, repeat) = (options.ranks.to_string(), options.repeat.to_string());
    let mut command = Command::new(target.join("release/earmark"));
    command.args(["mpirun", "-n", &ranks, "--compare", &SETTINGS.join(","), "--repeat", &repeat]);
    command.arg("--json").arg(&counts).arg("--").arg(&program);
    let runs = runs(&shell::output(&mut command)?);
    let all = SETTINGS.len() * options.repeat as usize;
    ensure!(runs.len() == all, "{name} printed {} times of {all} how long it took", runs.len());
    let counts: Value = serde_json::from_str(&fs::read_to_string(&counts)?)?;
    let mut cells = Vec::new();
    for (turn, result) in counts["results"].as_array().into_iter().flatten().enumerate() {
        let of_setting = || runs.iter().skip(turn).step_by(SETTINGS.len());
        let mut seconds: Vec<f64> = of_setting().map(|(seconds, _)| *seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let middle = [(seconds.len() - 1) / 2, seconds.len() / 2].map(|at| seconds[at]);
        cells.push(json!({
            "setting": result["setting"], "verified": of_setting().all(|(_, verified)| *verified),
            "seconds": f64::midpoint(middle[0], middle[1]), "seconds_of_runs": seconds,
            "interrupts": result["interrupts"], "frames": result["frames"],
        }));
    }
    Ok(json!({ "program": name, "class": class, "mpi": counts["mpi"], "cells": cells,
               "environment": counts["environment"] }))
}

/// The seconds of several runs in their order, and whether the result of each was right.
fn runs(text: &str) -> Vec<(f64, bool)> {
    let mut runs: Vec<(f64, bool)> = Vec::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once('=') else { continue };
        match (name.trim(), value.trim(), runs.last_mut()) {
            ("Time in seconds", value, _) => {
                runs.push((value.parse().unwrap_or(f64::NAN), false));
            }
            ("Verification", "SUCCESSFUL", Some(run)) => run.1 = true,
            _ => {}
        }
    }
    runs
}
