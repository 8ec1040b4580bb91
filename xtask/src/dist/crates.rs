//! The crates that are published for others to build on.

use anyhow::Result;

use super::stage::Build;
use crate::shell;

/// Those that promise something to others, in the order in which they need each other.
const CRATES: [&str; 4] = ["earmark-base", "earmark-nic", "earmark-infer", "earmark-mx"];

/// Packages each and compiles what was packaged, as the registry's users will; sends nothing.
pub(super) fn check(build: &Build) -> Result<()> {
    let mut publish = build.cargo(&["publish", "--dry-run", "--allow-dirty", "--quiet"]);
    publish.args(CRATES.into_iter().flat_map(|package| ["--package", package]));
    shell::run(&mut publish)
}
