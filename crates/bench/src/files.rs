//! Files that users name: bounded reads, and whether they can be written, found out early.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The text of a regular file of `most` bytes at most.
///
/// # Errors
/// If it is a directory, a device or a pipe, is larger, is no UTF-8, or cannot be read.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let invalid = |what: String| Error::new(ErrorKind::InvalidInput, what);
    // Looked at before it is opened: a pipe without a writer would not open for ever.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { "a directory" } else { "a device or a pipe" };
        return Err(invalid(format!("it is {kind}, and no file")));
    }
    let mut text = String::new();
    File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(invalid(format!("it is larger than {most} bytes")));
    }
    Ok(text)
}

/// Finds out whether `bytes` can be written to `path`, and leaves it as it was.
///
/// # Errors
/// Why they cannot.
pub fn writable(path: &Path, bytes: usize) -> io::Result<()> {
    let before = fs::metadata(path);
    if before.as_ref().is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        // Opening it would wait for its reader.
        return Ok(());
    }
    let probe = || -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            // A device: nothing that anybody would read.
            return file.write(&[]).map(drop);
        }
        let written = file.write_all(&vec![b' '; bytes]);
        file.set_len(metadata.len())?;
        written
    };
    let outcome = probe();
    if before.is_err() {
        // A run that is interrupted leaves no empty file.
        let _ = fs::remove_file(path);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_sane_size_are_read() {
        let directory = std::env::temp_dir().join(format!("earmark-files-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join("text");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read_text(&file, 5).unwrap(), "12345");
        let error = |path: &Path, most| read_text(path, most).unwrap_err().to_string();
        assert_eq!(error(&file, 4), "it is larger than 4 bytes");
        assert_eq!(error(&directory, 9), "it is a directory, and no file");
        assert_eq!(error(Path::new("/dev/zero"), 9), "it is a device or a pipe, and no file");
        writable(&file, 100).unwrap();
        writable(&directory.join("new"), 100).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "12345");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        assert!(writable(&directory, 0).is_err() && writable(Path::new("/dev/full"), 1).is_err());
        fs::remove_dir_all(directory).unwrap();
    }
}
