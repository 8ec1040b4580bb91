//! All tests, those in virtual time beside the others.
//!
//! Cargo runs one test binary after the other. Live tests leave processors idle for much of their
//! time; those in virtual time are nearly half of the suite, and how busy a machine is does not
//! matter to them. So the two run side by side. `cargo test --workspace` runs the same tests.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use crate::shell;

/// How the names of files begin whose tests are in virtual time.
const VIRTUAL: &str = "virtual_";

/// Builds all tests and runs them; names at the end what failed.
pub(crate) fn run() -> Result<()> {
    let (in_virtual_time, others): (Vec<_>, Vec<_>) =
        build()?.into_iter().partition(|tests| tests.name.starts_with(VIRTUAL));
    ensure!(
        !in_virtual_time.is_empty(),
        "cargo has built no tests whose names begin with {VIRTUAL}"
    );
    println!("What tests in virtual time print follows when the others have ended.");
    let (beside, others) = thread::scope(|scope| {
        let beside = scope.spawn(|| run_all(&in_virtual_time));
        let names: BTreeSet<_> = others.iter().map(|tests| tests.name.as_str()).collect();
        let others = names.into_iter().flat_map(|name| ["--test", name]);
        let others = cargo_test(["--lib", "--bins"].into_iter().chain(others)).status();
        (beside.join(), others)
    });
    let (said, mut failed) =
        beside.map_err(|_| anyhow!("the thread for tests in virtual time panicked"))??;
    println!("{said}");
    let documents = cargo_test(["--doc"]).status();
    for (name, status) in [("those that are not in virtual time", others), ("--doc", documents)] {
        if !status.context("starting `cargo test`")?.success() {
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join(", "));
    Ok(())
}

/// A file with integration tests, built.
struct Tests {
    name: String,
    executable: PathBuf,
    /// Where its package is.
    directory: PathBuf,
}

/// Builds all tests, and the examples that some of them start.
fn build() -> Result<Vec<Tests>> {
    let message_format = "--message-format=json-render-diagnostics";
    let mut command = shell::cargo(["test", "--workspace", "--no-run", message_format]);
    // What it compiles, and what is wrong with it, is for people to see.
    let messages = shell::output(command.stderr(Stdio::inherit()))?;
    Ok(messages.lines().filter_map(Tests::of).collect())
}

impl Tests {
    /// What a message of cargo is about, if that is a file with integration tests.
    fn of(message: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(message).ok()?;
        let target = &message["target"];
        if !target["kind"].as_array()?.contains(&"test".into()) {
            return None;
        }
        let directory = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
        let executable = message["executable"].as_str()?.into();
        Some(Self { name: target["name"].as_str()?.to_owned(), executable, directory })
    }
}

/// Runs the tests of these files. Cargo would build some of their crates anew for them alone.
/// What they print, in its order, and the names of the files with tests that failed.
fn run_all(files: &[Tests]) -> Result<(String, Vec<&str>)> {
    let (mut said, mut failed) = (Vec::new(), Vec::new());
    for Tests { name, executable, directory } in files {
        let (mut reader, writer) = io::pipe().context("making a pipe")?;
        let mut command = Command::new(executable);
        command.current_dir(directory);
        command.stdout(writer.try_clone().context("copying a pipe")?).stderr(writer);
        let mut child = command.spawn().with_context(|| format!("starting tests of {name}"))?;
        // It has the ends that are written to: the pipe ends with the last of them.
        drop(command);
        said.extend(format!("     Running {}\n", executable.display()).into_bytes());
        reader.read_to_end(&mut said).with_context(|| format!("reading from tests of {name}"))?;
        if !child.wait().with_context(|| format!("waiting for tests of {name}"))?.success() {
            failed.push(name.as_str());
        }
    }
    Ok((String::from_utf8_lossy(&said).into_owned(), failed))
}

/// A command that runs some tests, all of them whatever fails before.
fn cargo_test<'a>(which: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = shell::cargo(["test", "--workspace", "--no-fail-fast"]);
    command.args(which);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_integration_tests_are_found_in_what_cargo_says() {
        let message = |kind: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml",
                "target":{{"kind":["{kind}"],"name":"virtual_b"}},"executable":{executable}}}"#
            )
        };
        let tests = Tests::of(&message("test", r#""/w/target/b""#)).unwrap();
        assert_eq!(tests.name, "virtual_b");
        assert_eq!(
            (tests.executable, tests.directory),
            ("/w/target/b".into(), "/w/crates/a".into())
        );
        let others = [message("lib", r#""/w/target/b""#), message("test", "null"), "x".into()];
        assert!(others.iter().all(|message| Tests::of(message).is_none()));
    }
}
