//! Changes of the sources.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// One piece of text in a file, which is replaced before the build.
#[derive(Debug)]
pub struct Edit {
    /// The file.
    pub file: &'static str,
    /// What is in it once.
    pub from: &'static str,
    /// What takes its place.
    pub to: &'static str,
}

/// Makes all of `edits` below `source`; or none if the text of one is not in its file exactly once,
/// and then says so.
///
/// # Errors
/// If a file cannot be read or written.
pub(super) fn make(edits: &[Edit], source: &Path) -> Result<bool> {
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    for Edit { file, from, to } in edits {
        let path = source.join(file);
        let position = files.iter().position(|(edited, _)| *edited == path);
        let text = match position {
            Some(position) => files.swap_remove(position).1,
            // Series differ in their files, too.
            None if !path.is_file() => return Ok(false),
            None => {
                fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?
            }
        };
        if text.matches(from).count() != 1 {
            return Ok(false);
        }
        files.push((path, text.replace(from, to)));
    }
    for (path, text) in files {
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(true)
}
