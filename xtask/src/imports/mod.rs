//! Which file of a crate imports what from which other file, as its source says.
//!
//! A file imports what it names: a private `use`, and every path in its code, wherever the name
//! reaches it through re-exports. The import leads to the file that defines the name. A bare `mod`
//! and a `pub use` are none: the parent that lists and re-exports its children need not know what
//! they do. Code under `#[cfg(test)]` does not count.
//!
//! Not seen: methods, since only a compiler knows their type, and names that a macro puts together.

mod cycles;
mod files;
mod graph;
mod modules;
mod resolve;
mod visit;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::Value;

#[cfg(test)]
pub(crate) use cycles::Step;
pub(crate) use cycles::{Cycle, cycles};
use graph::Imports;

/// Reads the target whose root file is `root`, `lib.rs` or `main.rs` mostly.
pub(crate) fn read(root: &Path) -> Result<Imports> {
    read_with(root, &|path| match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => bail!("reading {}: {error}", path.display()),
    })
}

/// The same, of files that `read` knows.
fn read_with(root: &Path, read: files::Read<'_>) -> Result<Imports> {
    let tree = files::tree(root, read)?;
    let mut imports = Imports { files: tree.files.clone(), ..Imports::default() };
    for reference in &tree.references {
        let from = tree.modules[reference.module].file;
        for (to, name) in resolve::files_of(&tree, reference) {
            imports.add(from, to, name, reference.line);
        }
    }
    Ok(imports)
}

/// The root files of the library and the programs of a package, as `cargo metadata` lists them.
pub(crate) fn roots(package: &Value) -> Vec<PathBuf> {
    let is_own = |target: &&Value| {
        let kinds = target["kind"].as_array().map_or(&[][..], Vec::as_slice);
        let own = ["lib", "bin", "cdylib", "proc-macro"];
        kinds.iter().any(|kind| own.iter().any(|wanted| kind == wanted))
    };
    let targets = package["targets"].as_array().into_iter().flatten().filter(is_own);
    targets.filter_map(|target| target["src_path"].as_str()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests;
