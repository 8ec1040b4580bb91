//! What must hold before a change lands.
//!
//! Everything is built once, by the step `build`: with all targets, so that tests, figures
//! and packages share it. The kernel of guests is built beside the steps that only check.

use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};

use crate::{bpf, dist, figures, header, kernel, page, peers, shell, suite, tidy, tools};

/// What has to work without an operating system: the crates that are `#![no_std]`.
const BARE_CRATES: [&str; 6] = [
    "earmark-base",
    "earmark-nic",
    "earmark-mx",
    "earmark-sim",
    "earmark-workload",
    "earmark-model",
];

/// What has to work in a browser beside those.
const INFER: [&str; 1] = ["earmark-infer"];

/// What has records of devices and says what they mean, predictions, and experiments in the model:
/// in a browser as well.
const RECORDS: [&str; 5] =
    ["earmark-device", "earmark-show", "earmark-read", "earmark-forecast", "earmark-bench"];

/// What is checked for which targets beside this machine's: the pure crates for machines without an
/// operating system and for browsers, the command for the C library of the tarball.
const TARGETS: [(&str, &[&str]); 5] = [
    ("x86_64-unknown-none", &BARE_CRATES),
    ("wasm32-unknown-unknown", &BARE_CRATES),
    ("wasm32-unknown-unknown", &INFER),
    ("wasm32-unknown-unknown", &RECORDS),
    ("x86_64-unknown-linux-musl", &["earmark"]),
];

/// The step before which those that run beside others have to end.
const TESTS: &str = "tests";

/// One step: what its heading says, what to type to repeat it alone, and what it does.
struct CiStep {
    name: &'static str,
    again: String,
    action: Box<dyn Fn() -> Result<()> + Send + Sync>,
    /// Whether it runs beside the steps that follow, until [`TESTS`].
    is_beside: bool,
}

impl CiStep {
    fn task(name: &'static str, action: fn() -> Result<()>) -> Self {
        let again = format!("cargo xtask {name}");
        Self { name, again, action: Box::new(action), is_beside: false }
    }

    fn cargo(name: &'static str, arguments: &'static str) -> Self {
        Self::command(name, move || shell::cargo(arguments.split(' ')))
    }

    fn command(name: &'static str, command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        let again = shell::line(&command());
        let action = Box::new(move || shell::run(&mut command()));
        Self { name, again, action, is_beside: false }
    }

    fn again(self, again: &str) -> Self {
        Self { again: again.into(), ..self }
    }

    /// Whether it succeeds; prints the reason otherwise, and the time.
    fn succeeds(&self) -> bool {
        let started = Instant::now();
        let done = (self.action)();
        if let Err(error) = &done {
            println!("-- {} failed: {error:#}", self.name);
        }
        println!("-- {}: {:.1} s", self.name, started.elapsed().as_secs_f64());
        done.is_ok()
    }
}

/// Runs every step, and names those that have failed at the end.
pub(crate) fn run() -> Result<()> {
    let started = Instant::now();
    let steps = steps();
    let mut failed = Vec::new();
    thread::scope(|scope| -> Result<()> {
        let mut beside = Vec::new();
        for (number, step) in (1..).zip(&steps) {
            if step.name == TESTS {
                for (step, thread) in beside.drain(..) {
                    let thread: thread::ScopedJoinHandle<'_, bool> = thread;
                    let done = thread.join().map_err(|_| anyhow!("a step has panicked"))?;
                    failed.extend((!done).then_some(step));
                }
            }
            println!("\n== {number}/{}: {} ({})", steps.len(), step.name, step.again);
            if step.is_beside {
                beside.push((step, scope.spawn(|| step.succeeds())));
            } else {
                failed.extend((!step.succeeds()).then_some(step));
            }
        }
        Ok(())
    })?;
    outcome(&failed)?;
    println!("\nci: all steps passed in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// An error with the commands that repeat the steps that have failed, if any.
fn outcome(failed: &[&CiStep]) -> Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let line = |step: &&CiStep| format!("\n  {}; to repeat it alone: {}", step.name, step.again);
    bail!("ci: steps that failed:{}", failed.iter().map(line).collect::<String>())
}

fn steps() -> Vec<CiStep> {
    let mut steps = vec![
        CiStep::task("peers", peers::ensure_ci),
        CiStep::cargo("format", "fmt --all --check"),
        CiStep::task("tidy", tidy::run),
        CiStep::task("licences", tools::check_dependencies),
        CiStep::task("header", header::check),
        CiStep::task("bpf", bpf::check).again("cargo xtask bpf --check"),
        CiStep::command("build", shell::build),
        CiStep { is_beside: true, ..CiStep::task("kernel", kernel::ensure) },
        CiStep { is_beside: true, ..CiStep::task("page", page::check) }
            .again("cargo xtask page --check"),
        CiStep::cargo("lints", "clippy --workspace --all-targets -- -D warnings"),
        CiStep::command("documentation", || {
            let mut doc = shell::cargo(["doc", "--workspace", "--no-deps"]);
            doc.env("RUSTDOCFLAGS", "-D warnings");
            doc
        }),
    ];
    steps.extend(TARGETS.map(|(target, packages)| CiStep {
        name: target,
        again: shell::line(&check_for(target, packages)),
        action: Box::new(move || check_target(target, packages)),
        is_beside: false,
    }));
    steps.extend([
        // What they depend on is checked already, in the same place.
        CiStep::cargo("fuzzers", "check --manifest-path fuzz/Cargo.toml --target-dir target"),
        CiStep::task(TESTS, suite::run).again("cargo test --workspace --no-fail-fast"),
        CiStep::task("figures", figures::check),
        CiStep::task("packages", dist::check_packages)
            .again("cargo xtask dist --check --packages-only"),
    ]);
    steps
}

/// Checks packages for another target. Its standard library is a download of its own, which a
/// machine without a network does not get: that is printed, and the other steps still count.
fn check_target(target: &str, packages: &[&str]) -> Result<()> {
    if tools::ensure_target(target) {
        return shell::run(&mut check_for(target, packages));
    }
    println!("NOT CHECKED: {} for {target}: `rustup target add {target}`", packages.join(", "));
    Ok(())
}

fn check_for(target: &str, packages: &[&str]) -> Command {
    let packages = packages.iter().flat_map(|package| ["-p", package]);
    shell::cargo(["check", "--target", target].into_iter().chain(packages))
}
