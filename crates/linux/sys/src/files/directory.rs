//! Files of one directory, which stays open: nothing on the way to it can be exchanged meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Error, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fchmod, fstat, fsync, openat, renameat, unlinkat};
use rustix::io::{Errno, retry_on_intr};

use super::owner::{self, Others};
use super::read;
use super::walk::Walk;
use crate::seed::seed;

/// A directory that is open.
#[derive(Debug)]
pub struct Directory {
    file: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory.
    ///
    /// # Errors
    /// If there is none, or a link of another user is on the way.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: Walk::new(None, None)?.directory(path)?, path: path.to_owned() })
    }

    /// Opens a directory, and makes it and those above it if they are missing; this user alone may
    /// write there.
    pub fn open_or_make(path: &Path) -> io::Result<Self> {
        let walk = Walk::new(None, Some(Mode::from_raw_mode(0o755)))?;
        Ok(Self { file: walk.directory(path)?, path: path.to_owned() })
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.file
    }

    /// Refuses it if others could have put files there.
    ///
    /// # Errors
    /// If it belongs neither to this user nor to root, or others may write to it.
    pub fn check_own(&self) -> io::Result<()> {
        owner::check(&self.path, &fstat(&self.file)?, Others::MayRead)
    }

    /// The names in it, in their order.
    pub fn names(&self, most: usize) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::new(self.readable()?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if names.len() == most {
                let what = format!("it has more than {most} files");
                return Err(Error::new(ErrorKind::InvalidInput, what));
            }
            names.push(OsStr::from_bytes(name).to_owned());
        }
        names.sort();
        Ok(names)
    }

    /// The text of a regular file that is this user's or root's and that others cannot write.
    ///
    /// # Errors
    /// If it is something else or a link, is larger than `most` bytes, or cannot be read.
    pub fn read_own(&self, name: impl AsRef<OsStr>, most: u64) -> io::Result<String> {
        let name = name.as_ref();
        let (file, status) = read::open(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?;
        owner::check(&self.path.join(name), &status, Others::MayRead)?;
        read::text(read::bytes(file, &status, most)?)
    }

    pub(super) fn read_text(&self, name: &OsStr, most: u64) -> io::Result<String> {
        let (file, status) = read::open(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?;
        read::text(read::bytes(file, &status, most)?)
    }

    /// Opens a file to lock it, and makes it if it is missing, for this user alone.
    ///
    /// # Errors
    /// If it cannot be made, or a link or a pipe is in its place.
    pub fn lock_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mode = Mode::from_raw_mode(0o600);
        let open = || openat(&self.file, name.as_ref(), flags | OFlags::CLOEXEC, mode);
        Ok(retry_on_intr(open)?.into())
    }

    /// Replaces a file, or makes it, with these permissions; it is on disk afterwards.
    ///
    /// # Errors
    /// If it cannot be written; what was there is there then.
    pub fn write(&self, name: impl AsRef<OsStr>, bytes: &[u8], mode: u32) -> io::Result<()> {
        let mut new = self.new_file(name.as_ref(), Some(mode))?;
        new.write_all(bytes)?;
        new.finish()
    }

    pub(super) fn new_file(&self, name: &OsStr, mode: Option<u32>) -> io::Result<NewFile<'_>> {
        NewFile::create(self, format!(".earmark-{:016x}", seed()).into(), name, mode)
    }

    /// A new file that all may read, which is called `beside` until it takes the place of `name`.
    /// What a killed process has left there is removed, so a lock must keep others away.
    pub fn new_file_as(
        &self,
        beside: impl AsRef<OsStr>,
        name: impl AsRef<OsStr>,
    ) -> io::Result<NewFile<'_>> {
        let beside = beside.as_ref();
        match unlinkat(&self.file, beside, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        NewFile::create(self, beside.to_owned(), name.as_ref(), Some(0o644))
    }

    /// Removes a file, or a link.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(&self.file, name.as_ref(), AtFlags::empty())?)
    }

    /// Waits until its names are on disk.
    pub fn sync(&self) -> io::Result<()> {
        let directory = match self.readable() {
            // It can be written and not be read: nothing can be waited for.
            Err(Errno::ACCESS) => return Ok(()),
            directory => directory?,
        };
        match retry_on_intr(|| fsync(&directory)) {
            // This file system has no such thing for directories.
            Err(Errno::INVAL) => Ok(()),
            synced => Ok(synced?),
        }
    }

    fn readable(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        retry_on_intr(|| openat(&self.file, ".", flags, Mode::empty()))
    }
}

impl From<OwnedFd> for Directory {
    fn from(file: OwnedFd) -> Self {
        Self { file, path: PathBuf::new() }
    }
}

/// A file beside the place that it will take. It is removed unless it takes it.
#[derive(Debug)]
pub struct NewFile<'a> {
    directory: &'a Directory,
    beside: OsString,
    name: OsString,
    file: File,
    mode: Option<u32>,
    is_placed: bool,
}

impl<'a> NewFile<'a> {
    fn create(
        directory: &'a Directory,
        beside: OsString,
        name: &OsStr,
        mode: Option<u32>,
    ) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // The umask takes bits away from the usual permissions. Others are given when all is
        // written: until then it is neither for other users nor a program.
        let first = Mode::from_raw_mode(if mode.is_some() { 0o600 } else { 0o666 });
        let file = retry_on_intr(|| openat(&directory.file, &beside, flags, first))?.into();
        Ok(Self { directory, beside, name: name.to_owned(), file, mode, is_placed: false })
    }

    /// Waits until its bytes are on disk.
    pub fn sync(&self) -> io::Result<()> {
        self.give_mode()?;
        self.file.sync_all()
    }

    fn give_mode(&self) -> io::Result<()> {
        Ok(self.mode.map_or(Ok(()), |mode| fchmod(&self.file, Mode::from_raw_mode(mode)))?)
    }

    /// Puts it in its place, at once. The file can still be written.
    ///
    /// # Errors
    /// If a directory is there, or the system refuses; it is gone then.
    pub fn place(&mut self) -> io::Result<File> {
        let directory = &self.directory.file;
        self.give_mode()?;
        renameat(directory, &self.beside, directory, &self.name)?;
        self.is_placed = true;
        self.file.try_clone()
    }

    /// Puts it in its place, when its bytes are on disk; its name is on disk afterwards.
    pub fn finish(mut self) -> io::Result<()> {
        self.sync()?;
        let directory = self.directory;
        self.place()?;
        directory.sync()
    }
}

impl Write for NewFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            let _ = unlinkat(&self.directory.file, &self.beside, AtFlags::empty());
        }
    }
}
