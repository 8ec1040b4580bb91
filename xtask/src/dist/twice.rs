//! The same bytes, wherever they are built.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

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

/// Builds the commit again in another directory, and compares.
pub(super) fn compare(build: &Build, artefacts: &[&Path]) -> Result<()> {
    let directory = build.out.join("twice");
    fresh(&directory)?;
    // A path of another length, in case one is kept somewhere.
    let source = directory.join("other-sources");
    let mut clone = shell::command("git");
    clone.args(["clone", "--quiet", "--no-hardlinks"]).arg(&build.source).arg(&source);
    shell::run(&mut clone)?;
    let (target, out) = (directory.join("target"), directory.join("artefacts"));
    let again = Build::new(&source, &target, &out, build.profile)?;
    Artefacts::make(&again, &mut Totals::default(), true)?;
    let mut different = Vec::new();
    for first in artefacts {
        let name = first.file_name().unwrap_or_default();
        let second = out.join(name);
        let read = |path: &Path| fs::read(path).with_context(|| format!("read {}", path.display()));
        if read(first)? != read(&second)? {
            different.push(format!("\n  cmp {} {}", first.display(), second.display()));
        }
    }
    if !different.is_empty() {
        bail!("the second build has other bytes:{}", different.concat());
    }
    println!("{} artefacts have the same bytes in both builds", artefacts.len());
    fs::remove_dir_all(&directory).with_context(|| format!("remove {}", directory.display()))
}
