//! What must hold before a change lands.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::{demo, dist, header, kernel, peers, repo, screenshots, shell, suite, tidy, toolchain};

const BARE_TARGET: &str = "x86_64-unknown-none";

/// What has to work without an operating system: the crates that are `#![no_std]`.
const BARE_CRATES: [&str; 4] = ["earmark-base", "earmark-nic", "earmark-mx", "earmark-sim"];

/// One step: what its heading says, what to type to repeat it alone, and what it does.
struct Step {
    name: &'static str,
    again: String,
    action: Box<dyn Fn() -> Result<()>>,
}

impl Step {
    fn task(name: &'static str, action: fn() -> Result<()>) -> Self {
        Self { name, again: format!("cargo xtask {name}"), action: Box::new(action) }
    }

    fn cargo(name: &'static str, arguments: &'static str) -> Self {
        Self::command(name, move || shell::cargo(arguments.split(' ')))
    }

    fn command(name: &'static str, command: impl Fn() -> Command + 'static) -> Self {
        let again = shell::line(&command());
        Self { name, again, action: Box::new(move || shell::run(&mut command())) }
    }
}

/// Runs every step, and names those that have failed at the end.
pub(crate) fn run() -> Result<()> {
    let started = Instant::now();
    let steps = steps();
    let mut failed = Vec::new();
    for (number, step) in (1..).zip(&steps) {
        println!("\n== {number}/{}: {} ({})", steps.len(), step.name, step.again);
        let step_started = Instant::now();
        if let Err(error) = (step.action)() {
            println!("-- {} failed: {error:#}", step.name);
            failed.push(step);
        }
        println!("-- {}: {:.1} s", step.name, step_started.elapsed().as_secs_f64());
    }
    outcome(&failed)?;
    println!("\nci: all steps passed in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// An error with the commands that repeat the steps that have failed, if any.
fn outcome(failed: &[&Step]) -> Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let line = |step: &&Step| format!("\n  {}; to repeat it alone: {}", step.name, step.again);
    bail!("ci: steps that failed:{}", failed.iter().map(line).collect::<String>())
}

fn steps() -> Vec<Step> {
    let mut steps = vec![
        Step::task("peers", peers::ensure),
        Step::task("kernel", kernel::ensure),
        Step::cargo("format", "fmt --all --check"),
        Step::task("tidy", tidy::run),
        Step::task("licences", dist::check_licences),
        Step {
            name: "header",
            again: "cargo xtask header".into(),
            action: Box::new(header::check),
        },
        Step::cargo("lints", "clippy --workspace --all-targets -- -D warnings"),
        Step {
            name: "tests",
            again: "cargo test --workspace --no-fail-fast".into(),
            action: Box::new(suite::run),
        },
        Step::command("documentation", || {
            let mut doc = shell::cargo(["doc", "--workspace", "--no-deps"]);
            doc.env("RUSTDOCFLAGS", "-D warnings");
            doc
        }),
        Step { name: "no-std", again: shell::line(&build_without_std()), action: Box::new(no_std) },
    ];
    if repo::root().join("fuzz/Cargo.toml").exists() {
        steps.push(Step::cargo("fuzzers", "check --manifest-path fuzz/Cargo.toml"));
    }
    steps.push(Step::task("demo", demo::run));
    steps.push(Step::task("screenshots", screenshots::of_demo));
    steps
}

/// Builds the pure crates for a machine without an operating system.
///
/// The standard library of that target is a download of its own. Without it the tidy step is the
/// proof: these crates say `#![no_std]` and name nothing that would bring std back.
fn no_std() -> Result<()> {
    if toolchain::ensure_target(BARE_TARGET) {
        return shell::run(&mut build_without_std());
    }
    println!("{BARE_TARGET} is not installed and cannot be: `rustup target add {BARE_TARGET}`.");
    let crates = BARE_CRATES.join(", ");
    println!("Proven by the tidy step alone: {crates} are #![no_std] and bring no std back.");
    Ok(())
}

fn build_without_std() -> Command {
    let packages = BARE_CRATES.into_iter().flat_map(|package| ["-p", package]);
    shell::cargo(["build", "--target", BARE_TARGET].into_iter().chain(packages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_that_failed_is_named_with_its_command() {
        let steps = [Step::cargo("tests", "test --workspace"), Step::task("tidy", || Ok(()))];
        assert!(outcome(&[]).is_ok());
        let error = outcome(&[&steps[0], &steps[1]]).unwrap_err().to_string();
        for line in ["tests; to repeat it alone: ", "test --workspace", "tidy; to repeat it alone"]
        {
            assert!(error.contains(line), "no `{line}` in {error}");
        }
    }
}
