//! Programs that measure, and files with figures.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{repo, shell};

/// Builds the measuring loops as users build: optimised.
pub(super) fn build(package: &str, example: &str) -> Result<PathBuf> {
    let arguments = ["build", "--release", "--package", package, "--example", example];
    shell::run(&mut shell::cargo(arguments))?;
    Ok(repo::target_directory()?.join("release/examples").join(example))
}

/// Writes the figures of one world to `path`, beside what it has of others.
pub(super) fn write_world(
    figures: &impl Serialize,
    schema: &str,
    world: &str,
    path: &Path,
) -> Result<()> {
    let mut all: Value = match fs::read_to_string(repo::root().join(path)) {
        Ok(text) => {
            serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?
        }
        Err(_) => json!({}),
    };
    all["schema"] = schema.into();
    all[world] = serde_json::to_value(figures)?;
    write(&all, path)
}

/// Writes figures to `path`, which counts from the root of the repository.
pub(super) fn write(figures: &impl Serialize, path: &Path) -> Result<()> {
    let path = repo::root().join(path);
    let write = || -> Result<()> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        Ok(fs::write(&path, serde_json::to_string_pretty(figures)? + "\n")?)
    };
    write().with_context(|| format!("writing {}", path.display()))?;
    println!("\nwritten to {}", path.display());
    Ok(())
}
