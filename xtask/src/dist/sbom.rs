//! A bill of materials for each artefact, in the JSON of CycloneDX, which cargo-cyclonedx writes.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::stage::{Build, Flavour, write};
use crate::{repo, shell, tools};

/// Writes the bill of an artefact that is called `name` and holds the crate `package`.
pub(super) fn make(build: &Build, name: &str, package: &str, flavour: Flavour) -> Result<PathBuf> {
    let mut cyclonedx = tools::CYCLONEDX.command()?;
    cyclonedx.current_dir(&build.source).env("SOURCE_DATE_EPOCH", build.epoch.to_string());
    cyclonedx.args(["cyclonedx", "--format", "json", "--spec-version", "1.5", "--no-build-deps"]);
    cyclonedx.args(["--quiet", "--target", flavour.target(), "--override-filename", name]);
    shell::run(&mut cyclonedx)?;
    // It writes one beside each manifest of the workspace, with the directory in its names.
    let directory = package.trim_start_matches("earmark-");
    let source = build.source.display().to_string();
    let mut bill = None;
    for path in repo::files(&build.source, &["json"])? {
        if path.file_name().is_some_and(|file| file == format!("{name}.json").as_str()) {
            if path.parent().is_some_and(|it| it.ends_with(directory)) {
                bill = Some(fs::read_to_string(&path)?.replace(&source, "/usr/src/earmark"));
            }
            fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
        }
    }
    let path = build.out.join(format!("{name}.cdx.json"));
    write(&path, &bill.with_context(|| format!("find the bill of {package}"))?)?;
    Ok(path)
}
