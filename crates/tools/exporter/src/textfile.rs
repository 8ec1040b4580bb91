//! A file for the textfile collector of node_exporter.

use std::path::Path;

use anyhow::{Context, Result};
use sys::files;

/// Replaces the file, so that no reader sees half of it. The collector reads names that end in
/// `.prom`; what is written first is called otherwise.
pub fn write(path: &Path, text: &str) -> Result<()> {
    // node_exporter is another user, whatever the umask of this one is.
    files::write_with(path, text.as_bytes(), Some(0o644)).with_context(|| {
        format!("write {}; make its directory, and let this user write there", path.display())
    })
}
