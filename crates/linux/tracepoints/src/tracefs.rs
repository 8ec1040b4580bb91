//! Where the kernel says which tracepoints it has: tracefs.
//!
//! It is usually mounted at `/sys/kernel/tracing`. Where it is not, [`Tracefs::open`] makes a mount
//! that is attached nowhere (`fsopen(2)`, `fsmount(2)`, Linux 5.2): no other process sees it; it is
//! gone with the descriptor that holds it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::PerfError;
use super::format::Format;

/// Where it is mounted, if it is: since Linux 4.1, and before.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The longest file of layout that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// A tracefs, mounted or private.
#[derive(Debug)]
pub struct Tracefs {
    root: OwnedFd,
    is_private: bool,
}

impl Tracefs {
    /// Opens the mounted one, or else one of our own.
    ///
    /// # Errors
    /// If there is none, and this process may not mount one.
    pub fn open() -> Result<Self, PerfError> {
        let mounted = MOUNTED.iter().find_map(|path| Self::mounted(path).ok());
        mounted.map_or_else(Self::private, Ok)
    }

    fn mounted(path: &str) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(path, flags, Mode::empty())?;
        // The directory is there, and empty, where tracefs is not mounted.
        openat(&root, "events", flags, Mode::empty())?;
        Ok(Self { root, is_private: false })
    }

    /// One of our own, whether or not one is mounted.
    pub fn private() -> Result<Self, PerfError> {
        let mount = || -> rustix::io::Result<OwnedFd> {
            let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_create(context.as_fd())?;
            let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY;
            fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
        };
        let root = mount().map_err(|errno| PerfError::Tracefs(errno.into()))?;
        Ok(Self { root, is_private: true })
    }

    /// Whether it was mounted for this process alone.
    pub fn is_private(&self) -> bool {
        self.is_private
    }

    /// The layout of the tracepoint `group:name`; `None` if this kernel has none of that name.
    pub fn format(&self, event: &str) -> Result<Option<Format>, PerfError> {
        let file = format!("events/{}/format", event.replace(':', "/"));
        let text = match self.read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(PerfError::Read(file, cause)),
        };
        match Format::parse(&text) {
            Ok(format) => Ok(Some(format)),
            Err(cause) => Err(PerfError::Format(file, cause)),
        }
    }

    fn read(&self, file: &str) -> io::Result<String> {
        let opened = openat(&self.root, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = String::new();
        File::from(opened).take(MAX_FILE).read_to_string(&mut text)?;
        Ok(text)
    }
}
