//! Bounded reads of regular files.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Error, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::retry_on_intr;

use super::owner::{self, Others};

/// The bytes of a regular file of `most` bytes at most.
///
/// # Errors
/// If it is a directory, a device or a pipe, is larger, or cannot be read.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, status) = open(CWD, path.as_os_str(), AtFlags::empty())?;
    bytes(file, &status, most)
}

/// The text of a regular file of `most` bytes at most.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    text(read(path, most)?)
}

/// The text of a regular file that is this user's or root's and that others cannot read: a secret.
///
/// # Errors
/// As of [`read_text`], and if it is not.
pub fn read_secret(path: &Path, most: u64) -> io::Result<String> {
    let (file, status) = open(CWD, path.as_os_str(), AtFlags::empty())?;
    owner::check(path, &status, Others::MayNothing)?;
    text(bytes(file, &status, most)?)
}

/// The text of a stream, such as standard input, of `most` bytes at most.
pub fn read_text_from(stream: impl Read, most: u64) -> io::Result<String> {
    text(bounded(stream, most)?)
}

/// A file that is open for reading. What is no regular file is not opened: a pipe may wait for a
/// writer, and opening a device may do something.
pub(super) fn open(directory: impl AsFd, name: &OsStr, links: AtFlags) -> io::Result<(File, Stat)> {
    check_regular(&retry_on_intr(|| statat(&directory, name, links))?)?;
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if links.contains(AtFlags::SYMLINK_NOFOLLOW) {
        flags |= OFlags::NOFOLLOW;
    }
    let file: OwnedFd = retry_on_intr(|| openat(&directory, name, flags, Mode::empty()))?;
    // Another one may have taken its place.
    let status = fstat(&file)?;
    check_regular(&status)?;
    Ok((file.into(), status))
}

fn check_regular(status: &Stat) -> io::Result<()> {
    let kind = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Symlink => "a link",
        _ => "a device or a pipe",
    };
    Err(Error::new(ErrorKind::InvalidInput, format!("it is {kind}, and no file")))
}

pub(super) fn bytes(file: File, status: &Stat, most: u64) -> io::Result<Vec<u8>> {
    if u64::try_from(status.st_size).is_ok_and(|size| size > most) {
        return Err(too_large(most));
    }
    bounded(file, most)
}

fn bounded(stream: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

fn too_large(most: u64) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("it is larger than {most} bytes"))
}

pub(super) fn text(bytes: Vec<u8>) -> io::Result<String> {
    let invalid = |_| Error::new(ErrorKind::InvalidData, "it is no text in UTF-8");
    String::from_utf8(bytes).map_err(invalid)
}
