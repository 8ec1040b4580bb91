//! A tree such as `/`, or the root of another machine's image, which may belong to another user.

use std::io::{self, Error, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use device::setters::FileTree;
use rustix::fs::{AtFlags, Mode, readlinkat, unlinkat};

use super::directory::Directory;
use super::walk::Walk;

/// With which permissions missing directories are made, less those that the umask takes away.
const MAKE: Option<Mode> = Some(Mode::from_raw_mode(0o777));

/// A tree. Paths begin at its root, with a slash or without, and lead out of it by no link.
#[derive(Clone, Debug)]
pub struct Tree {
    path: PathBuf,
}

impl Tree {
    /// The one at `path`, which need not be there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where a path is, for messages.
    pub fn shown(&self, path: &str) -> PathBuf {
        self.path.join(path.trim_start_matches('/'))
    }

    /// Whether there is such a directory.
    pub fn has_directory(&self, path: &str) -> bool {
        self.directory(path).is_ok()
    }

    /// The names in a directory, in their order; none if there is no such directory. Those that are
    /// no UTF-8 are left out.
    pub fn names(&self, path: &str, most: usize) -> io::Result<Vec<String>> {
        let names = match self.directory(path).map_err(|error| (error.kind(), error)) {
            Err((ErrorKind::NotFound | ErrorKind::NotADirectory, _)) => return Ok(Vec::new()),
            Err((_, error)) => return Err(error),
            Ok(directory) => directory.names(most)?,
        };
        Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }

    /// The text of a regular file of `most` bytes at most; `None` if there is nothing. A link to
    /// `/dev/null` is an empty file: systemd has them to hide files of the same name.
    ///
    /// # Errors
    /// If it is something else, a link that leads nowhere, larger, or cannot be read.
    pub fn read_text(&self, path: &str, most: u64) -> io::Result<Option<String>> {
        match self.read_there(path.as_ref(), most) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            text => text.map(Some),
        }
    }

    fn read_there(&self, path: &Path, most: u64) -> io::Result<String> {
        let root = self.root(None)?;
        let walk = |follows| Walk::new(Some(root.as_fd()), None)?.file(path, follows);
        let (mut directory, mut name) = walk(false)?;
        let target = readlinkat(&directory, &name, Vec::new()).ok();
        if target.as_ref().is_some_and(|target| target.as_bytes() == b"/dev/null") {
            return Ok(String::new());
        }
        if target.is_some() {
            (directory, name) = walk(true)?;
        }
        Directory::from(directory).read_text(&name, most).map_err(|error| match error.kind() {
            ErrorKind::NotFound if target.is_some() => {
                Error::new(ErrorKind::InvalidInput, "it is a link that leads nowhere in this tree")
            }
            _ => error,
        })
    }

    /// Replaces a file, or makes it and the directories above it. It is on disk afterwards.
    pub fn write(&self, path: &str, text: &str, mode: u32) -> io::Result<()> {
        let root = self.root(MAKE)?;
        let walk = Walk::new(Some(root.as_fd()), MAKE)?;
        let (directory, name) = walk.file(path.as_ref(), false)?;
        Directory::from(directory).write(name, text.as_bytes(), mode)
    }

    /// Removes a file or a link.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        self.unlink(path.as_ref(), AtFlags::empty())
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.unlink(path.as_ref(), AtFlags::REMOVEDIR)
    }

    fn unlink(&self, path: &Path, flags: AtFlags) -> io::Result<()> {
        let root = self.root(None)?;
        let (directory, name) = Walk::new(Some(root.as_fd()), None)?.file(path, false)?;
        Ok(unlinkat(directory, name, flags)?)
    }

    fn root(&self, make: Option<Mode>) -> io::Result<OwnedFd> {
        Walk::new(None, make)?.directory(&self.path)
    }

    fn directory(&self, path: &str) -> io::Result<Directory> {
        let root = self.root(None)?;
        Ok(Walk::new(Some(root.as_fd()), None)?.directory(path.as_ref())?.into())
    }
}

impl FileTree for Tree {
    fn read_text(&self, path: &str, most: u64) -> io::Result<Option<String>> {
        Self::read_text(self, path, most)
    }

    fn names(&self, path: &str, most: usize) -> io::Result<Vec<String>> {
        Self::names(self, path, most)
    }

    fn shown(&self, path: &str) -> PathBuf {
        Self::shown(self, path)
    }
}
