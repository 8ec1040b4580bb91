//! A file for the textfile collector of node_exporter.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};

/// Writes a file beside and puts it in its place, so that no reader sees half of it.
///
/// # Errors
/// If the directory cannot be written, or something there is no file.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let fail =
        || format!("write {}; make its directory, and let this user write there", path.display());
    let beside = beside(path)?;
    // What is there is half of a file at best, or a link to a file of somebody else's.
    let _ = fs::remove_file(&beside);
    let mut file = File::create_new(&beside).with_context(fail)?;
    let written = file
        .write_all(text.as_bytes())
        // node_exporter is another user, whatever the umask of this one is.
        .and_then(|()| file.set_permissions(Permissions::from_mode(0o644)))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.with_context(fail)
}

/// The file that is written first. The collector reads names that end in `.prom`; this does not.
fn beside(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| anyhow!("{} names no file", path.display()))?;
    ensure!(!path.is_dir(), "{} is a directory; name a file in it", path.display());
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(".new");
    Ok(path.with_file_name(beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_replaced_and_nothing_else_is_left() {
        let directory =
            std::env::temp_dir().join(format!("earmark-textfile-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let file = directory.join("a.prom");
        write(&file, "one\n").unwrap();
        fs::write(directory.join(".a.prom.new"), "half of").unwrap();
        write(&file, "two\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        let error = write(&directory, "x").unwrap_err().to_string();
        assert!(error.contains("is a directory"), "{error}");
        let error = write(&directory.join("no/a.prom"), "x").unwrap_err().to_string();
        assert!(error.contains("make its directory"), "{error}");
        fs::remove_dir_all(&directory).unwrap();
    }
}
