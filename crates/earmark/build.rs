//! The commit that the program is built from, for those who compare results: `EARMARK_COMMIT` if
//! that is set, else what git says, with a mark of what was changed since.

use std::io::Write;
use std::process::{Command, Stdio};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=EARMARK_COMMIT");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    for name in std::fs::read_dir("..").into_iter().flatten().flatten() {
        println!("cargo::rerun-if-changed={}", name.path().join("src").display());
    }
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let given = std::env::var("EARMARK_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(commit).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=EARMARK_COMMIT={commit}");
}

/// The commit of the work tree; none outside of one.
fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let Some(changes) = git(&["--no-optional-locks", "diff", "HEAD"]) else { return Some(commit) };
    // Two different changes of one commit are two programs.
    let hash = ["hash-object", "--stdin"];
    let hash = Command::new("git").args(hash).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut hash = hash.ok()?;
    hash.stdin.take()?.write_all(changes.as_bytes()).ok()?;
    let hash = String::from_utf8(hash.wait_with_output().ok()?.stdout).ok()?;
    Some(format!("{commit}+{}", hash.get(..12)?))
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
