//! What must hold before a change lands.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::{
    demo, dist, figures, header, kernel, peers, repo, screenshots, shell, suite, tidy, toolchain,
};

/// What has to work without an operating system: the crates that are `#![no_std]`.
const BARE_CRATES: [&str; 4] = ["earmark-base", "earmark-nic", "earmark-mx", "earmark-sim"];

/// What is checked for which targets beside this machine's: the pure crates for machines without an
/// operating system and for browsers, the command for the C library of the tarball.
const TARGETS: [(&str, &[&str]); 3] = [
    ("x86_64-unknown-none", &BARE_CRATES),
    ("wasm32-unknown-unknown", &BARE_CRATES),
    ("x86_64-unknown-linux-musl", &["earmark"]),
];

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
    ];
    steps.extend(TARGETS.map(|(target, packages)| Step {
        name: target,
        again: shell::line(&check_for(target, packages)),
        action: Box::new(move || check_target(target, packages)),
    }));
    if repo::root().join("fuzz/Cargo.toml").exists() {
        steps.push(Step::cargo("fuzzers", "check --manifest-path fuzz/Cargo.toml"));
    }
    steps.push(Step::task("figures", figures::check));
    steps.push(Step::task("demo", demo::run));
    steps.push(Step::task("screenshots", screenshots::of_demo));
    steps
}

/// Checks packages for another target. Its standard library is a download of its own, which a
/// machine without a network does not get; it says so, and what it did check still counts.
fn check_target(target: &str, packages: &[&str]) -> Result<()> {
    if toolchain::ensure_target(target) {
        return shell::run(&mut check_for(target, packages));
    }
    println!("NOT CHECKED: {} for {target}: `rustup target add {target}`", packages.join(", "));
    Ok(())
}

fn check_for(target: &str, packages: &[&str]) -> Command {
    let packages = packages.iter().flat_map(|package| ["-p", package]);
    shell::cargo(["check", "--target", target].into_iter().chain(packages))
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
