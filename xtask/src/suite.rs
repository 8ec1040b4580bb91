//! All tests, those in virtual time beside the others.
//!
//! Cargo runs one test binary after the other. Live tests leave processors idle for much of their
//! time; those in virtual time are nearly half of the suite, and how busy a machine is does not
//! matter to them. So the two run side by side. `cargo test --workspace` runs the same tests.

use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use crate::{repo, shell};

/// How the names of files begin whose tests run guests, most of them in virtual time.
const VIRTUAL: &str = "guests";

/// Builds all tests and runs them; names at the end which part failed.
pub(crate) fn run() -> Result<()> {
    shell::run(&mut shell::build())?;
    let (in_virtual_time, others): (Vec<_>, Vec<_>) =
        names(&repo::metadata()?).into_iter().partition(|name| name.starts_with(VIRTUAL));
    ensure!(!in_virtual_time.is_empty(), "no tests have names that begin with {VIRTUAL}");
    println!("What tests in virtual time print follows when the others have ended.");
    let (beside, others) = thread::scope(|scope| {
        let beside = scope.spawn(|| cargo_test(&[], &in_virtual_time).output());
        let others = cargo_test(&["--lib", "--bins"], &others).status();
        (beside.join(), others)
    });
    let beside = beside.map_err(|_| anyhow!("the thread for tests in virtual time panicked"))?;
    let beside = beside.context("starting `cargo test`")?;
    for printed in [beside.stdout, beside.stderr] {
        println!("{}", String::from_utf8_lossy(&printed));
    }
    let parts = [
        ("those in virtual time", beside.status),
        ("the others", others.context("starting `cargo test`")?),
        ("--doc", cargo_test(&["--doc"], &[]).status().context("starting `cargo test`")?),
    ];
    let failed: Vec<_> =
        parts.into_iter().filter(|(_, status)| !status.success()).map(|(name, _)| name).collect();
    ensure!(failed.is_empty(), "{}", failed.join(", "));
    Ok(())
}

/// The names of all files with integration tests.
fn names(metadata: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let targets = list(&metadata["packages"]).into_iter().flat_map(|it| list(&it["targets"]));
    let tests = targets.filter(|it| list(&it["kind"]).contains(&"test".into()));
    let mut names: Vec<String> =
        tests.filter_map(|it| Some(it["name"].as_str()?.to_owned())).collect();
    names.sort();
    names.dedup();
    names
}

/// A command that runs some tests, all of them whatever fails before. With `CI` set they fail, and
/// are not skipped, where a program or a right is missing.
fn cargo_test(which: &[&str], names: &[String]) -> Command {
    let mut command = shell::cargo(["test", "--workspace", "--no-fail-fast"]);
    command.args(which).args(names.iter().flat_map(|name| ["--test", name]));
    command.env("CI", "true");
    command
}
