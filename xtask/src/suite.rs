//! All tests, those in virtual time beside the others.
//!
//! Cargo runs one test binary after the other. Live tests leave processors idle for much of their
//! time; those in virtual time are nearly half of the suite, and how busy a machine is does not
//! matter to them. So the two run side by side. `cargo test --workspace` runs the same tests.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::process::{Command, ExitStatus};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use crate::shell;

/// How the names of files begin whose tests are in virtual time.
const VIRTUAL: &str = "virtual_";

/// Builds all tests and runs them; names at the end what failed.
pub(crate) fn run() -> Result<()> {
    // Builds the examples, too, which tests start, and leaves nothing to be built by those below,
    // which would wait for each other.
    shell::run(&mut shell::cargo(["test", "--workspace", "--no-run"]))?;
    let metadata =
        shell::output(&mut shell::cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
    let names = integration_tests(&metadata)?;
    let (in_virtual_time, others): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| name.starts_with(VIRTUAL));
    println!("What tests in virtual time print follows when the others have ended.");
    let (beside, others) = thread::scope(|scope| {
        let beside = scope.spawn(|| output(test(&[], &in_virtual_time)));
        let others = test(&["--lib", "--bins"], &others).status();
        (beside.join(), others)
    });
    let (in_virtual_time, said) =
        beside.map_err(|_| anyhow!("the thread for tests in virtual time panicked"))??;
    println!("{said}");
    let documents = test(&["--doc"], &[]).status();
    let parts = [
        ("the others", others.context("starting `cargo test`")?),
        ("in virtual time", in_virtual_time),
        ("in documentation", documents.context("starting `cargo test --doc`")?),
    ];
    let failed: Vec<_> =
        parts.iter().filter(|(_, status)| !status.success()).map(|(name, _)| *name).collect();
    ensure!(failed.is_empty(), "{}", failed.join(", "));
    Ok(())
}

/// A command that runs these tests.
fn test(kinds: &[&str], names: &[String]) -> Command {
    let mut command = shell::cargo(["test", "--workspace", "--no-fail-fast"]);
    command.args(kinds);
    command.args(names.iter().flat_map(|name| ["--test", name]));
    command
}

/// How the command ended, and what it wrote, in the order in which it did.
fn output(mut command: Command) -> Result<(ExitStatus, String)> {
    let (mut reader, writer) = io::pipe().context("making a pipe")?;
    command.stdout(writer.try_clone().context("copying a pipe")?).stderr(writer);
    let mut child = command.spawn().context("starting `cargo test`")?;
    // It has the ends that are written to: the pipe ends with the last of them.
    drop(command);
    let mut said = Vec::new();
    reader.read_to_end(&mut said).context("reading from `cargo test`")?;
    let status = child.wait().context("waiting for `cargo test`")?;
    Ok((status, String::from_utf8_lossy(&said).into_owned()))
}

/// The names of all integration tests, from what `cargo metadata` says.
fn integration_tests(metadata: &str) -> Result<BTreeSet<String>> {
    let metadata: Value = serde_json::from_str(metadata).context("reading cargo metadata")?;
    let list = |of: &Value, key| of[key].as_array().cloned().unwrap_or_default();
    let targets = list(&metadata, "packages").into_iter().flat_map(|it| list(&it, "targets"));
    let tests = targets.filter(|target| list(target, "kind").contains(&"test".into()));
    let names: BTreeSet<_> =
        tests.filter_map(|target| target["name"].as_str().map(str::to_owned)).collect();
    ensure!(names.iter().any(|name| name.starts_with(VIRTUAL)), "cargo metadata names no tests");
    Ok(names)
}
