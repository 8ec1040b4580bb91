//! The commit that the program is built from: what `earmark --version` says, and what those who
//! merge results compare.
//!
//! It is that of `EARMARK_COMMIT`, as `HASH` or `HASH DATE`, for those who build from sources
//! without their history; without it, that of git's HEAD, with a mark of what was changed since;
//! or else it is left out. Cargo runs this again when the variable, HEAD or a source changes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const VARIABLE: &str = "EARMARK_COMMIT";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let named = std::env::var(VARIABLE).ok().filter(|commit| !commit.trim().is_empty());
    let commit = named.map(|commit| commit.trim().to_owned()).or_else(commit_of_head);
    let version = env!("CARGO_PKG_VERSION");
    let version =
        commit.as_ref().map_or(version.to_owned(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=EARMARK_LONG_VERSION={version}");
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env={VARIABLE}={commit}");
}

/// The short hash and the date of HEAD, if these files are those of the repository: what cargo
/// packages may lie within a repository of something else.
fn commit_of_head() -> Option<String> {
    watch();
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let commit = git(&["log", "-1", "--abbrev=10", "--date=short", "--format=%h %cd"])?;
    Some(commit + &changes_since_head().unwrap_or_default())
}

fn watch() {
    // Commits, checkouts and resets all write to the first; where it is not kept, to the others.
    let log = git_path("logs/HEAD").into_iter();
    let branch = git(&["symbolic-ref", "HEAD"]);
    let others = || ["HEAD", branch.as_deref().unwrap_or("HEAD"), "packed-refs"];
    let mut watched: Vec<_> = log.collect();
    if watched.is_empty() {
        watched.extend(others().into_iter().filter_map(git_path));
    }
    for path in watched {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    let floors = directories(Path::new("..")).into_iter();
    // Cargo takes a path that does not exist for one that has changed, at every build.
    let sources = floors.flat_map(|floor| [directories(&floor), vec![floor]].concat());
    for source in sources.map(|it| it.join("src")).filter(|it| it.is_dir()) {
        println!("cargo::rerun-if-changed={}", source.display());
    }
}

fn directories(within: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(within).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// A mark of what was changed since: two different changes of one commit are two programs.
fn changes_since_head() -> Option<String> {
    let changes = git(&["--no-optional-locks", "diff", "HEAD"])?;
    let hash = ["hash-object", "--stdin"];
    let hash = Command::new("git").args(hash).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut hash = hash.ok()?;
    hash.stdin.take()?.write_all(changes.as_bytes()).ok()?;
    let hash = String::from_utf8(hash.wait_with_output().ok()?.stdout).ok()?;
    Some(format!("+{}", hash.get(..12)?))
}

/// A file of git's, if it is there.
fn git_path(name: &str) -> Option<String> {
    git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists())
}

/// What git prints; None if it fails or prints nothing.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
