//! Files that a command line names for output.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Error, ErrorKind, Write};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::geteuid;

use super::directory::{Directory, NewFile};
use super::walk::Walk;

/// Writes a file: a new one takes the place of what is there, with the permissions that this user
/// has given it. A device, a pipe, or a link to one, is written to.
///
/// # Errors
/// If it is a directory, a link of another user is on the way, or it cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, bytes, None)
}

/// The same with these permissions, whatever the umask is and the old file has.
pub fn write_with(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let mut place = OutputPath::find(path)?;
    place.mode = mode.or(place.mode);
    let replace = |mut new: NewFile<'_>| {
        new.write_all(bytes)?;
        new.finish()
    };
    place.put(replace, |mut there| {
        truncate(&there)?;
        there.write_all(bytes)
    })
}

/// An empty file in the place of what is there, to be written bit by bit.
pub fn create(path: &Path) -> io::Result<File> {
    OutputPath::find(path)?.put(|mut new| new.place(), |there| truncate(&there).map(|()| there))
}

/// Makes a file that is not there yet, with these permissions.
///
/// # Errors
/// If anything is there, or it cannot be written; it is not there then.
pub fn create_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (directory, name) = Walk::new(None, None)?.file(path, false)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let open = || openat(&directory, &name, flags, Mode::from_raw_mode(mode));
    let mut file = File::from(retry_on_intr(open)?);
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = unlinkat(&directory, &name, AtFlags::empty());
    }
    written
}

/// Finds out whether `bytes` can be written to `path`, and leaves it as it was.
pub fn writable(path: &Path, bytes: usize) -> io::Result<()> {
    let place = OutputPath::find(path)?;
    if place.is_pipe() {
        // Opening it would wait for its reader.
        return Ok(());
    }
    let blank = |mut new: NewFile<'_>| new.write_all(&vec![b' '; bytes]);
    // To a device, nothing that anybody would read.
    place.put(blank, |mut there| there.write(&[]).map(drop))
}

fn truncate(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
}

struct OutputPath {
    directory: Directory,
    name: OsString,
    kind: Option<FileType>,
    /// The permissions that a new file gets, if it does not have the usual ones.
    mode: Option<u32>,
}

impl OutputPath {
    fn find(path: &Path) -> io::Result<Self> {
        let (directory, name) = Walk::new(None, None)?.file(path, true)?;
        let there = match statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => None,
            there => Some(there?),
        };
        let kind = there.map(|there| FileType::from_raw_mode(there.st_mode));
        if kind == Some(FileType::Directory) {
            let what = "it is a directory; name a file in it";
            return Err(Error::new(ErrorKind::IsADirectory, what));
        }
        let own = there.filter(|there| there.st_uid == geteuid().as_raw());
        let mode = own.map(|own| own.st_mode & 0o777);
        Ok(Self { directory: directory.into(), name, kind, mode })
    }

    fn is_pipe(&self) -> bool {
        let there = statat(self.directory.descriptor(), &self.name, AtFlags::empty());
        there.is_ok_and(|there| FileType::from_raw_mode(there.st_mode) == FileType::Fifo)
    }

    /// Gives `replace` a new file if a file or nothing is there, else `there` what is there. A file
    /// whose directory takes no new one, or that is mounted there, is written to.
    fn put<T>(
        &self,
        replace: impl FnOnce(NewFile<'_>) -> io::Result<T>,
        there: impl FnOnce(File) -> io::Result<T>,
    ) -> io::Result<T> {
        let is_file = self.kind == Some(FileType::RegularFile);
        if !is_file && self.kind.is_some() {
            return there(self.open(OFlags::empty())?);
        }
        match self.directory.new_file(&self.name, self.mode).and_then(replace) {
            Err(error) if is_file && is_about_directory(&error) => {
                there(self.open(OFlags::NOFOLLOW | OFlags::NONBLOCK)?)
            }
            put => put,
        }
    }

    fn open(&self, flags: OFlags) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC | flags;
        let open = || openat(self.directory.descriptor(), &self.name, flags, Mode::empty());
        Ok(retry_on_intr(open)?.into())
    }
}

/// Whether an error says that the directory takes no new file, or does not give up the old one.
fn is_about_directory(error: &Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| {
        [Errno::ACCESS, Errno::PERM, Errno::ROFS, Errno::BUSY].contains(&errno)
    })
}
