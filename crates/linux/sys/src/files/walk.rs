//! The way to a file, one directory after the other, each of them open.
//!
//! A path of this machine is walked as the kernel would, except that a link of another user is an
//! error. A path in a tree is walked as after `chroot`: `..` and links lead nowhere but into the
//! tree.

use std::ffi::{OsStr, OsString};
use std::io::{self, Error, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{
    FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat, fstat, fstatfs, mkdirat, open, openat,
    readlinkat,
};
use rustix::io::Errno;

use super::owner;

/// How a name on the way is opened: itself, even if it is a link, and for nothing but the way.
const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// As many links as the kernel follows.
const MOST_LINKS: u32 = 40;

pub(super) struct Walk<'a> {
    /// The tree that it does not leave.
    tree: Option<BorrowedFd<'a>>,
    /// With which permissions missing directories are made, if they are.
    make: Option<Mode>,
    /// The directories from the first one to the present one; without a tree the present one alone.
    at: Vec<OwnedFd>,
    links: u32,
}

impl<'a> Walk<'a> {
    /// One through this machine, or through a tree.
    pub(super) fn new(tree: Option<BorrowedFd<'a>>, make: Option<Mode>) -> io::Result<Self> {
        let first = match tree {
            Some(tree) => tree.try_clone_to_owned()?,
            None => open(".", DIRECTORY, Mode::empty())?,
        };
        Ok(Self { tree, make, at: vec![first], links: 0 })
    }

    pub(super) fn directory(mut self, path: &Path) -> io::Result<OwnedFd> {
        self.enter(path)?;
        self.at.pop().ok_or_else(|| Errno::NOENT.into())
    }

    /// The directory in which `path` ends, and the name there, which need not exist. A link of that
    /// name is followed if `follows`. It stays if the kernel alone knows where it leads, as
    /// `/proc/self/fd/1`.
    pub(super) fn file(mut self, path: &Path, follows: bool) -> io::Result<(OwnedFd, OsString)> {
        let name = self.last(path, follows)?;
        let directory = self.at.pop().ok_or(Errno::NOENT)?;
        Ok((directory, name))
    }

    fn last(&mut self, path: &Path, follows: bool) -> io::Result<OsString> {
        let Some(name) = path.file_name() else {
            return Err(Error::new(
                ErrorKind::IsADirectory,
                "it is a directory; name a file in it",
            ));
        };
        self.enter(path.parent().unwrap_or(Path::new("")))?;
        match openat(self.here()?, name, STEP, Mode::empty()) {
            Ok(found) if follows => match self.link(name, &found, &fstat(&found)?)? {
                Some(target) => self.through(name, |walk| walk.last(target.as_ref(), true)),
                None => Ok(name.to_owned()),
            },
            _ => Ok(name.to_owned()),
        }
    }

    fn here(&self) -> io::Result<BorrowedFd<'_>> {
        Ok(self.at.last().ok_or(Errno::NOENT)?.as_fd())
    }

    fn enter(&mut self, path: &Path) -> io::Result<()> {
        for component in path.components() {
            match component {
                Component::RootDir => self.enter_root()?,
                Component::ParentDir => self.leave()?,
                Component::Normal(name) => self.step(name)?,
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(())
    }

    fn enter_root(&mut self) -> io::Result<()> {
        match self.tree {
            Some(_) => self.at.truncate(1),
            None => self.at = vec![open("/", DIRECTORY, Mode::empty())?],
        }
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        match self.tree {
            Some(_) if self.at.len() > 1 => drop(self.at.pop()),
            Some(_) => {}
            None => self.at = vec![openat(self.here()?, "..", DIRECTORY, Mode::empty())?],
        }
        Ok(())
    }

    fn step(&mut self, name: &OsStr) -> io::Result<()> {
        let found = match (openat(self.here()?, name, STEP, Mode::empty()), self.make) {
            (Err(Errno::NOENT), Some(mode)) => {
                match mkdirat(self.here()?, name, mode) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno.into()),
                }
                openat(self.here()?, name, STEP, Mode::empty())?
            }
            (found, _) => found?,
        };
        let status = fstat(&found)?;
        if let Some(target) = self.link(name, &found, &status)? {
            return self.through(name, |walk| walk.enter(target.as_ref()));
        }
        let found = match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => found,
            // A link that the kernel alone can follow.
            FileType::Symlink => openat(self.here()?, name, DIRECTORY, Mode::empty())?,
            _ => return Err(Errno::NOTDIR.into()),
        };
        if self.tree.is_none() {
            self.at.clear();
        }
        self.at.push(found);
        Ok(())
    }

    /// Where a link leads; `None` if it is none, or one that the kernel alone can follow.
    fn link(
        &mut self,
        name: &OsStr,
        found: &OwnedFd,
        status: &Stat,
    ) -> io::Result<Option<OsString>> {
        if FileType::from_raw_mode(status.st_mode) != FileType::Symlink {
            return Ok(None);
        }
        if self.tree.is_none() {
            if !owner::may_lead(status.st_uid) {
                let (name, owner) = (name.display(), status.st_uid);
                return Err(Error::new(
                    ErrorKind::PermissionDenied,
                    format!("`{name}` is a link of user {owner}; name the place itself"),
                ));
            }
            if fstatfs(found)?.f_type == PROC_SUPER_MAGIC {
                return Ok(None);
            }
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = readlinkat(found, "", Vec::new())?;
        Ok(Some(OsStr::from_bytes(target.as_bytes()).to_owned()))
    }

    /// Follows a link. Nothing is made on its way.
    fn through<T>(
        &mut self,
        name: &OsStr,
        follow: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        let make = self.make.take();
        let followed = follow(self);
        self.make = make;
        followed.map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.dangling(name),
            _ => error,
        })
    }

    fn dangling(&self, name: &OsStr) -> Error {
        let place = if self.tree.is_some() { " in this tree" } else { "" };
        let what = format!("`{}` is a link that leads nowhere{place}", name.display());
        Error::new(ErrorKind::InvalidInput, what)
    }
}
