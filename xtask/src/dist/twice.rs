//! The same bytes, wherever they are built.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::artefacts::Artefacts;
use super::report::Totals;
use super::stage::{Build, fresh};
use crate::shell;

/// The second build is of the commit, so the first one must be, too.
pub(super) fn require_committed(build: &Build) -> Result<()> {
    let mut git = shell::command("git");
    git.args(["status", "--porcelain", "--untracked-files=no"]).current_dir(&build.source);
    let changed = shell::output(&mut git)?;
    ensure!(changed.is_empty(), "commit what has changed, or build once:\n{}", changed.trim_end());
    Ok(())
}

/// Builds the commit again in another directory, and compares the sums with those of `first`.
pub(super) fn compare(build: &Build, first: &Totals) -> Result<()> {
    let directory = build.out.join("twice");
    fresh(&directory)?;
    // A path of another length, in case one is kept somewhere.
    let source = directory.join("other-sources");
    let mut clone = shell::command("git");
    clone.args(["clone", "--quiet", "--no-hardlinks"]).arg(&build.source).arg(&source);
    shell::run(&mut clone)?;
    let (target, out) = (directory.join("target"), directory.join("artefacts"));
    let again = Build::new(&source, &target, &out, build.profile)?;
    let mut second = Totals::default();
    Artefacts::make(&again, &mut second, true)?;
    let is_same = |name: &&str| first.sum(name) == second.sum(name);
    let different: Vec<&str> = first.names().filter(|name| !is_same(name)).collect();
    let (one, other) = (build.out.display(), out.display());
    ensure!(different.is_empty(), "{} differ in {one} and {other}", different.join(", "));
    println!("{} artefacts have the same bytes in both builds", first.names().count());
    fs::remove_dir_all(&directory).with_context(|| format!("remove {}", directory.display()))
}
