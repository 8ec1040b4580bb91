//! Measurements that the documentation quotes, as `xtask/benches.toml` lists them: commands, and
//! what is kept of what they print.
//!
//! | file | what |
//! |---|---|
//! | `plan.rs` | the benches and their cases |
//! | `value.rs` | values in what commands print |
//! | `figure.rs` | the spread of a figure over several runs |
//! | `record.rs` | what is kept of a long document |
//!
//! Cases take turns, so that a machine that drifts drifts under all of them. A case that fails is
//! listed with the reason instead of being left out in silence.

mod figure;
mod plan;
pub(crate) mod record;
pub(crate) mod value;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{repo, shell};
use figure::Spread;
use plan::{Case, Measurement};

/// The version of the layout of files with figures.
const SCHEMA: &str = "earmark-figures/1";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// What to measure: a bench of xtask/benches.toml, or a scenario; `--list` names the benches
    #[arg(default_value = "costs")]
    name: String,
    /// Only name the benches
    #[arg(long)]
    list: bool,
    /// Runs of each timed figure; the file has their median, least and most
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Build quickly, for figures that do not depend on how programs are compiled
    #[arg(long)]
    debug: bool,
    /// Only cases whose commands or records have this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// A variable of the bench
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    set: Vec<(String, String)>,
    /// Take the record from this file, such as one of `earmark merge`, and run nothing
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Where to write instead of docs/results/NAME.json
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').ok_or("a variable is NAME=VALUE")?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

/// Measures, prints, writes the file.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut benches = plan::read()?;
    if options.list {
        benches.iter().for_each(|(name, bench)| println!("{name:16} {}", bench.about));
        return Ok(());
    }
    let name = &options.name;
    let bench = match benches.remove(name) {
        Some(bench) => bench,
        None if repo::root().join(format!("scenarios/{name}.toml")).exists() => scenario(name)?,
        None => bail!("there is no bench and no scenario {name}; --list names the benches"),
    };
    let mut cases = bench.all(&options.set.iter().cloned().collect());
    let is_wanted = |text: &String| options.only.as_ref().is_none_or(|only| text.contains(only));
    cases.retain(|case| case.run.iter().chain(&case.record).any(is_wanted));
    let path = match &options.output {
        Some(path) => path.clone(),
        None => repo::root().join(format!("docs/results/{name}.json")),
    };
    let profile = if options.debug { "dev" } else { "release" };
    if options.from.is_none() {
        for arguments in &bench.build {
            let arguments = arguments.split_whitespace();
            let build = ["build", "--profile", profile].into_iter().chain(arguments);
            shell::run(&mut shell::cargo(build))?;
        }
    }
    let result = if cases.iter().any(|case| case.record.is_some()) {
        records(&cases, &path, options.from.as_deref(), profile)?
    } else {
        figures(&cases, options.runs, profile)?
    };
    fs::write(&path, record::text(&result)).with_context(|| format!("write {}", path.display()))?;
    println!("written to {}", path.display());
    Ok(())
}

/// The bench of a scenario of the command.
fn scenario(name: &str) -> Result<Measurement> {
    let text = format!(
        "about = \"scenario\"\nbuild = [\"-p earmark\"]\n\
         [[case]]\nrecord = \"\"\nrun = [\"earmark bench --json --scenario {name}\"]\n"
    );
    Ok(toml::from_str(&text)?)
}

/// What the last command of each case printed, shortened, beside what the file has of others.
fn records(cases: &[Case], path: &Path, from: Option<&Path>, profile: &str) -> Result<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|_| "{}".into());
    let mut all: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    for case in cases {
        let whole = match from {
            None => case.play(profile)?.as_array_mut().and_then(Vec::pop).unwrap_or_default(),
            Some(from) => {
                let text = fs::read_to_string(from);
                value::printed(&text.with_context(|| format!("read {}", from.display()))?)
            }
        };
        if whole.is_string() {
            bail!("{} printed no JSON: {whole}", case.run.join("; "));
        }
        let mut kept = record::shortened(&whole);
        if kept["environment"].is_null() {
            kept["environment"] = environment(profile)?;
        }
        match case.record.as_deref() {
            None | Some("") => all = kept,
            Some(name) => all[name] = kept,
        }
    }
    Ok(all)
}

fn figures(cases: &[Case], runs: u32, profile: &str) -> Result<Value> {
    let environment = environment(profile)?;
    println!("{environment}");
    let mut values = vec![BTreeMap::<usize, Vec<f64>>::new(); cases.len()];
    let mut reasons = BTreeMap::new();
    for run in 0..runs {
        for (number, case) in cases.iter().enumerate() {
            if reasons.contains_key(&number) || case.is_exact && run > 0 {
                continue;
            }
            match case.values(profile) {
                Ok(ours) => ours.into_iter().enumerate().for_each(|(figure, value)| {
                    values[number].entry(figure).or_default().push(value);
                }),
                Err(why) => drop(reasons.insert(number, format!("{why:#}"))),
            }
        }
    }
    let (mut figures, mut not_measured) = (Vec::new(), Vec::new());
    for (number, (case, mut values)) in cases.iter().zip(values).enumerate() {
        for (at, wanted) in case.figures.iter().enumerate() {
            let (name, unit) = (&wanted.name, &wanted.unit);
            match (values.remove(&at), reasons.get(&number)) {
                (Some(values), None) => {
                    let figure = Spread::new(name, unit, values, wanted.goal);
                    println!("{figure}");
                    figures.push(figure);
                }
                (_, reason) => {
                    println!("{name}: not measured: {}", reason.map_or("", String::as_str));
                    not_measured.push(json!({ "name": name, "reason": reason }));
                }
            }
        }
    }
    Ok(json!({ "schema": SCHEMA, "environment": environment, "figures": figures,
               "not_measured": not_measured }))
}

impl Case {
    /// What its figures are in one run.
    fn values(&self, profile: &str) -> Result<Vec<f64>> {
        let printed = self.play(profile)?;
        self.figures.iter().map(|wanted| value::formula(&wanted.value, &printed)).collect()
    }

    /// Runs the commands; what each printed.
    fn play(&self, profile: &str) -> Result<Value> {
        let target = repo::target_directory()?;
        let built = target.join(if profile == "dev" { "debug" } else { profile });
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = [built.clone(), built.join("examples")];
        let path = std::env::join_paths(places.into_iter().chain(std::env::split_paths(&path)))?;
        let mut printed = json!([]);
        for template in &self.run {
            let script = value::fill(template, &printed)?;
            println!("{}", script.trim());
            let mut bash = Command::new("bash");
            bash.args(["-ec", &script]).current_dir(repo::root()).env("PATH", &path);
            bash.env("OUT", target.join("bench-output")).env("TIMEFORMAT", "%R %U %S");
            let output = value::printed(&shell::output(&mut bash)?);
            printed.as_array_mut().context("outputs are a list")?.push(output);
        }
        Ok(printed)
    }
}

/// The machine that figures belong to, and how busy it was before.
fn environment(profile: &str) -> Result<Value> {
    let read = |path: &str| fs::read_to_string(path).with_context(|| format!("read {path}"));
    let cpuinfo = read("/proc/cpuinfo")?;
    // Not every architecture names its model.
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    Ok(json!({
        "cpu": model.map_or(std::env::consts::ARCH, |(_, model)| model.trim()),
        "cores": std::thread::available_parallelism()?.get(),
        "kernel": read("/proc/sys/kernel/osrelease")?.trim(),
        "profile": profile,
        "rustc": shell::output(Command::new("rustc").arg("--version"))?.trim(),
        "date": shell::output(Command::new("date").args(["--utc", "+%F"]))?.trim(),
        "load_average_1_min": read("/proc/loadavg")?.split(' ').next().map(value::printed),
    }))
}
