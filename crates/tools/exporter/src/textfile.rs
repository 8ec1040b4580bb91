//! A file for the textfile collector of node_exporter.

use std::path::Path;

use anyhow::{Context, Result};
use sys::files;

/// Replaces the file, so that no reader sees half of it. The collector reads names that end in
/// `.prom`; what is written first is called otherwise.
///
/// # Errors
/// If the directory cannot be written, or something there is no file.
pub fn write(path: &Path, text: &str) -> Result<()> {
    // node_exporter is another user, whatever the umask of this one is.
    files::write_with(path, text.as_bytes(), Some(0o644)).with_context(|| {
        format!("write {}; make its directory, and let this user write there", path.display())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_file_is_replaced_and_nothing_else_is_left() {
        let directory =
            std::env::temp_dir().join(format!("earmark-textfile-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let file = directory.join("a.prom");
        write(&file, "one\n").unwrap();
        write(&file, "two\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        let error = format!("{:#}", write(&directory, "x").unwrap_err());
        assert!(error.contains("is a directory"), "{error}");
        let error = write(&directory.join("no/a.prom"), "x").unwrap_err().to_string();
        assert!(error.contains("make its directory"), "{error}");
        fs::remove_dir_all(&directory).unwrap();
    }
}
