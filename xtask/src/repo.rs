//! Where things are.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// What `cargo metadata` says of the workspace, without its dependencies.
pub(crate) fn metadata() -> Result<Value> {
    let mut cargo = shell::cargo(["metadata", "--format-version", "1", "--no-deps"]);
    let output = shell::output(&mut cargo)?;
    serde_json::from_str(&output).context("reading the output of cargo metadata")
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    let directory = metadata["target_directory"].as_str();
    Ok(directory.context("cargo metadata names no target directory")?.into())
}

/// Every file below the root whose name ends in one of `extensions`, sorted; built ones left out.
pub(crate) fn files(root: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let entries =
            fs::read_dir(&directory).with_context(|| format!("listing {}", directory.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("listing {}", directory.display()))?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                let name = entry.file_name();
                if !["target", ".git", "corpus", "artifacts"].iter().any(|skip| name == *skip) {
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|is| extensions.iter().any(|want| is == *want)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
