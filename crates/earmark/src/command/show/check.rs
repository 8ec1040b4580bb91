//! `earmark show --check`: devices held against a policy, and what became of it in the exit status.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;

use report::names::remark;
use report::terminal::Lines;
use report::terminal::Width;
use report::{errln, json, outln};
use show::Report;
use show::check::{BUILT_IN, Checked, Compliance, Policy, Ruling, check};
use sys::files::read_text;

/// The status of a policy that cannot be read, as that of a wrong option.
const WRONG_POLICY: u8 = 2;
/// A rule is broken; as that of a goal that is not met.
const BROKEN: u8 = 3;
/// No rule is broken, and not all are known to hold.
const UNKNOWN: u8 = 4;

/// No policy has more bytes.
const LARGEST: u64 = 1 << 20;

#[derive(Serialize)]
struct Shown<'a> {
    policy: &'a str,
    holds: usize,
    broken: usize,
    unknown: usize,
    #[serde(flatten)]
    checked: &'a Checked,
}

/// The policy that comes with Earmark under this name, or the one in this file; where there is
/// none that can be read, the status that says so.
pub(in crate::command) fn policy(name: &str) -> Result<Policy, ExitCode> {
    let read = || -> Result<Policy> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Policy::parse(text);
        }
        let text = read_text(Path::new(name), LARGEST).with_context(|| {
            let names = BUILT_IN.map(|(name, _)| name).join(", ");
            let meant = remark(name, BUILT_IN.iter().map(|(name, _)| *name));
            format!("read policy {name}; those that come with Earmark are {names}{meant}")
        })?;
        Policy::parse(&text).with_context(|| format!("read policy {name}"))
    };
    read().map_err(|error| {
        errln!("earmark: {}", report::output::message(&error).trim_end());
        ExitCode::from(WRONG_POLICY)
    })
}

/// Prints what became of a policy, in lines for a terminal or as JSON; the status.
pub(in crate::command) fn run(
    name: &str,
    policy: &Policy,
    devices: &[Report],
    terminal: Option<Width>,
) -> Result<ExitCode> {
    let checked = check(policy, devices);
    let [holds, broken, unknown] = [Compliance::Holds, Compliance::Broken, Compliance::Unknown]
        .map(|outcome| checked.count(outcome));
    match terminal {
        None => {
            json::print(&Shown { policy: name, holds, broken, unknown, checked: &checked })?;
        }
        Some(width) => {
            lines(&checked).iter().for_each(|line| outln!("{}", Lines::listed(line, width)));
            outln!("{holds} hold, {broken} broken, {unknown} unknown");
        }
    }
    for group in &checked.empty_groups {
        errln!("no device is of the group {group}");
    }
    Ok(match (broken, unknown, holds) {
        (0, 0, 0) => ExitCode::from(UNKNOWN),
        (0, 0, _) => ExitCode::SUCCESS,
        (0, ..) => ExitCode::from(UNKNOWN),
        _ => ExitCode::from(BROKEN),
    })
}

/// A line for each rule that is not known to hold, the broken ones first.
fn lines(checked: &Checked) -> Vec<String> {
    let of = |outcome: Compliance| {
        checked.rulings().filter(move |(_, ruling)| ruling.outcome == outcome)
    };
    let broken = of(Compliance::Broken).map(|(device, ruling)| broken(device, ruling));
    let unknown = of(Compliance::Unknown).map(|(device, ruling)| unknown(device, ruling));
    broken.chain(unknown).collect()
}

fn broken(device: &str, ruling: &Ruling) -> String {
    let Ruling { group, rule, allowed, found, fix, .. } = ruling;
    let found = found.as_deref().unwrap_or_default();
    let fix = fix.as_deref().unwrap_or("no setting fixes that");
    format!("{device}: {rule} is {found}, not {allowed} [{group}]; {fix}")
}

fn unknown(device: &str, ruling: &Ruling) -> String {
    let Ruling { group, rule, allowed, why, .. } = ruling;
    let why = why.as_deref().unwrap_or_default();
    format!("{device}: {rule} is unknown, and should be {allowed} [{group}]: {why}")
}
