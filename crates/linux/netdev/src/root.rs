//! Where the kernel's files are: `/sys` and `/proc` of this machine, of one network of it, or of a
//! recorded tree.

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use device::kernel::KernelFiles;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::error::DeviceError;

/// A tree with `sys` and `proc` in it.
#[derive(Debug)]
pub struct Root {
    sys: PathBuf,
    proc: PathBuf,
    /// Keeps a mount of our own alive, which `sys` leads to.
    _mount: Option<OwnedFd>,
}

impl Root {
    /// The tree at `path`: `/` for this machine's own.
    pub fn at(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self { sys: path.join("sys"), proc: path.join("proc"), _mount: None }
    }

    /// This machine's files with the devices in the network of this thread.
    ///
    /// `/sys` shows the devices of the network that it was mounted in. Where that is another one,
    /// as in a shell that has only entered a network namespace, this mounts `sysfs` anew for itself
    /// alone, at no place, until it is dropped. If that is not allowed, `/sys` is taken after all:
    /// devices that are not in it cannot be read, and [`Root::is_of_network`] tells.
    pub fn here() -> Self {
        let machine = Self::at("/");
        if machine.is_of_network() {
            return machine;
        }
        match mount_sysfs() {
            Ok(mount) => Self {
                sys: PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())),
                proc: machine.proc,
                _mount: Some(mount),
            },
            Err(_) => machine,
        }
    }

    /// Whether the devices in `sys` are those of the network of this thread.
    pub fn is_of_network(&self) -> bool {
        let Ok(text) = self.read("proc/thread-self/net/dev") else { return true };
        let mut there = names_in_proc_net_dev(&text);
        let entries = fs::read_dir(self.path("sys/class/net"));
        // Bonding leaves a file there that is no device.
        let devices = entries.into_iter().flatten().flatten();
        let devices = devices.filter(|entry| entry.path().join("ifindex").exists());
        // Names need not be UTF-8; the other list has them replaced, too.
        let mut here: Vec<String> =
            devices.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        there.sort();
        here.sort();
        there == here
    }

    /// A path below `sys/` or `proc/`, where it really is.
    pub fn path(&self, path: &str) -> PathBuf {
        match path.split_once('/') {
            Some(("sys", rest)) => self.sys.join(rest),
            Some(("proc", rest)) => self.proc.join(rest),
            // Files such as /.dockerenv are beside them.
            _ => self.proc.parent().unwrap_or(Path::new("/")).join(path),
        }
    }

    /// The text of a file, such as `proc/interrupts`. What is not UTF-8 is replaced.
    pub fn read(&self, path: &str) -> Result<String, DeviceError> {
        let path = self.path(path);
        match fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(cause) => Err(DeviceError::Read(path, cause)),
        }
    }

    /// The error of a file that is not what it should be.
    pub(super) fn malformed(&self, path: &str) -> DeviceError {
        DeviceError::Read(self.path(path), io::ErrorKind::InvalidData.into())
    }

    /// The text of a file without space around it; `None` if it is missing, empty or not readable.
    pub fn word(&self, path: &str) -> Option<String> {
        let text = self.read(path).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The number in a file; `None` if it is missing, not readable or no such number.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.word(path)?.parse().ok()
    }

    /// The names in a directory, in no order.
    pub fn list(&self, path: &str) -> Result<Vec<String>, DeviceError> {
        let path = self.path(path);
        let names = |entries: fs::ReadDir| {
            let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
            entries.flatten().filter_map(name).collect()
        };
        fs::read_dir(&path).map(names).map_err(|cause| DeviceError::Read(path, cause))
    }

    /// Whether there is such a file or directory.
    pub fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The last part of what a link leads to, such as the driver of `device/driver`.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// Writes a value, in one write, as the kernel wants it.
    pub fn write(&self, path: &str, value: &str) -> Result<(), DeviceError> {
        let path = self.path(path);
        let write = || {
            use std::io::Write;
            fs::OpenOptions::new().write(true).open(&path)?.write_all(value.as_bytes())
        };
        let fail = |cause| DeviceError::Write(value.into(), path.clone(), cause);
        write().map_err(fail)
    }
}

impl KernelFiles for Root {
    fn bytes(&self, path: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        fs::File::open(self.path(path))?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
        Ok(fs::read_dir(self.path(path))?.flatten().filter_map(name).collect())
    }

    fn has(&self, path: &str) -> bool {
        Self::has(self, path)
    }

    fn link_name(&self, path: &str) -> Option<String> {
        Self::link_name(self, path)
    }
}

/// The names in `/proc/net/dev`: what is before the colons.
pub fn names_in_proc_net_dev(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

fn mount_sysfs() -> io::Result<OwnedFd> {
    let filesystem = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&filesystem)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&filesystem, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// The directory of a device, if it can be one: no name has a slash.
pub(super) fn directory_of(device: &str) -> Result<String, DeviceError> {
    if sys::ethtool::check_name(device).is_ok() && !device.contains('/') && device != ".." {
        return Ok(format!("sys/class/net/{device}"));
    }
    Err(DeviceError::Refused {
        action: "read",
        device: device.to_owned(),
        cause: io::Error::from_raw_os_error(libc::ENODEV),
        said: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_proc_net_dev_are_before_the_colon() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 1 2\neth0:3 4\n";
        assert_eq!(names_in_proc_net_dev(text), ["lo", "eth0"]);
        assert!(names_in_proc_net_dev("").is_empty());
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_devices() {
        for name in ["", "..", "../../kernel", "a/b", "far-too-long-a-name"] {
            assert!(directory_of(name).unwrap_err().is_no_device(), "{name}");
        }
        assert_eq!(directory_of("eth0").unwrap(), "sys/class/net/eth0");
    }

    #[test]
    fn here_shows_the_devices_of_this_network() {
        assert!(Root::here().is_of_network());
        assert!(Root::here().has("sys/class/net/lo"));
    }
}
