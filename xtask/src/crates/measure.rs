//! The figures of each crate.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::workspace;
use crate::imports::{self, Cycle};
use crate::repo;

/// One crate of the workspace.
#[derive(Debug)]
pub(super) struct Crate {
    pub name: String,
    /// Lines of Rust below `src`, comments and unit tests included.
    pub lines: usize,
    /// Lines of Rust elsewhere: tests, examples.
    pub other_lines: usize,
    /// The file below `src` with the most lines.
    pub largest: String,
    pub largest_lines: usize,
    /// Files that import each other.
    pub cycles: Vec<Cycle>,
}

/// Every crate that `cargo metadata` lists, by name.
pub(super) fn all(metadata: &Value, root: &Path) -> Result<Vec<Crate>> {
    let mut crates = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = package["manifest_path"].as_str().context("a package without a manifest")?;
        let directory = Path::new(manifest).parent().unwrap_or(root);
        let mut part = read(directory)?;
        part.name = workspace::name(package);
        for file in imports::roots(package) {
            part.cycles.extend(imports::cycles(&imports::read(&file)?));
        }
        crates.push(part);
    }
    crates.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(crates)
}

/// Counts lines.
fn read(directory: &Path) -> Result<Crate> {
    let mut part = Crate {
        name: String::new(),
        lines: 0,
        other_lines: 0,
        largest: String::new(),
        largest_lines: 0,
        cycles: Vec::new(),
    };
    for path in repo::files(directory, &["rs"])? {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {path:?}"))?;
        let lines = text.lines().count();
        let name = path.strip_prefix(directory).unwrap_or(&path);
        if !name.starts_with("src") {
            part.other_lines += lines;
            continue;
        }
        part.lines += lines;
        if lines > part.largest_lines {
            (part.largest, part.largest_lines) = (name.to_string_lossy().into_owned(), lines);
        }
    }
    Ok(part)
}
