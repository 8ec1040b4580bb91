//! A bill of materials for each artefact, in the JSON of CycloneDX, which cargo-cyclonedx writes.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::stage::{Build, Flavour};
use crate::{repo, shell, tools};

/// Writes the bill of an artefact that is called `name` and holds the crate `package`.
pub(super) fn make(build: &Build, name: &str, package: &str, flavour: Flavour) -> Result<PathBuf> {
    let mut cyclonedx = tools::CYCLONEDX.command()?;
    cyclonedx.current_dir(&build.source).env("SOURCE_DATE_EPOCH", build.epoch.to_string());
    cyclonedx.args(["cyclonedx", "--format", "json", "--spec-version", "1.5", "--no-build-deps"]);
    cyclonedx.args(["--quiet", "--target", flavour.target(), "--override-filename", name]);
    shell::run(&mut cyclonedx)?;
    // It writes one beside each manifest of the workspace.
    let bill = build.out.join(format!("{name}.cdx.json"));
    let of_package = format!("/{package}/{name}.json");
    let of_package = of_package.replace("/earmark-", "/");
    for path in repo::files(&build.source, &["json"])? {
        if path.ends_with(format!("{name}.json")) {
            if path.to_string_lossy().ends_with(&of_package) {
                fs::copy(&path, &bill).with_context(|| format!("copy {}", path.display()))?;
            }
            fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
        }
    }
    fs::metadata(&bill).with_context(|| format!("find the bill of {package}"))?;
    Ok(bill)
}
