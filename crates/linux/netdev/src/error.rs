//! Why a device could not be read or changed.

use std::io;
use std::path::PathBuf;

use super::tlv::Malformed;

/// Why a device could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// There is no netlink socket, or the kernel has no such generic netlink family.
    #[error("speak to the kernel's {0} interface: {1}; {remedy}", remedy = family_remedy(.1))]
    Family(&'static str, #[source] io::Error),
    /// The kernel or the driver refused.
    #[error("{action} {device}: {cause}{}; {remedy}", in_brackets(.said),
            remedy = remedy(.device, .cause, .said))]
    Refused {
        /// What was asked for, as a verb.
        action: &'static str,
        /// The name of the device.
        device: String,
        /// The error number.
        #[source]
        cause: io::Error,
        /// What the kernel said besides (its extended acknowledgement).
        said: Option<String>,
    },
    /// The kernel's answer is not what its headers say.
    #[error(
        "{action} {device}: the kernel's answer cannot be read: {cause}; \
             please report this with the output of: uname -r"
    )]
    Malformed {
        /// What was asked for, as a verb.
        action: &'static str,
        /// The name of the device.
        device: String,
        /// What is wrong with it.
        #[source]
        cause: Malformed,
    },
    /// This file of the kernel could not be read.
    #[error("read {path}: {1}; {remedy}", path = .0.display(), remedy = file_remedy(.1))]
    Read(PathBuf, #[source] io::Error),
    /// This value could not be written to this file of the kernel.
    #[error("write {0} to {path}: {2}; {remedy}", path = .1.display(), remedy = file_remedy(.2))]
    Write(String, PathBuf, #[source] io::Error),
}

impl DeviceError {
    /// What the kernel said, as a number, if it said anything.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Family(_, cause)
            | Self::Refused { cause, .. }
            | Self::Read(_, cause)
            | Self::Write(_, _, cause) => cause.raw_os_error(),
            Self::Malformed { .. } => None,
        }
    }

    /// Whether more rights would help.
    pub fn is_denied(&self) -> bool {
        matches!(self.code(), Some(libc::EPERM | libc::EACCES))
    }

    /// Whether driver or kernel do not have this at all.
    pub fn is_unsupported(&self) -> bool {
        match self {
            // Netlink refuses parameters that a driver lacks as it refuses bad values.
            Self::Refused { said: Some(said), .. } if said.contains("unsupported") => true,
            _ => matches!(self.code(), Some(libc::EOPNOTSUPP | libc::ENOENT | libc::ENOSYS)),
        }
    }

    /// Whether the driver has something else to do first.
    pub fn is_busy(&self) -> bool {
        self.code() == Some(libc::EBUSY)
    }

    /// Whether there is no such device.
    pub fn is_no_device(&self) -> bool {
        self.code() == Some(libc::ENODEV)
    }
}

fn in_brackets(said: &Option<String>) -> String {
    said.as_ref().map_or(String::new(), |said| format!(" ({said})"))
}

fn family_remedy(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::ENOENT) => "it takes a newer kernel, or one with this built in",
        _ => "check the limit on open files: ulimit -n",
    }
}

fn remedy(device: &str, cause: &io::Error, said: &Option<String>) -> String {
    let lacks = format!("its driver does not offer this; what it offers: earmark show {device}");
    match cause.raw_os_error() {
        _ if said.as_ref().is_some_and(|said| said.contains("unsupported")) => lacks,
        Some(libc::EPERM | libc::EACCES) => "run it as root, or with CAP_NET_ADMIN".into(),
        Some(libc::ENODEV) => "list the devices with: ip link".into(),
        Some(libc::EOPNOTSUPP) => lacks,
        Some(libc::EINVAL | libc::ERANGE) => {
            format!("its driver does not take this value; what it has: earmark show {device}")
        }
        Some(libc::EBUSY) => {
            format!("it may take a device that is down: ip link set {device} down")
        }
        _ => "what the driver says about it: dmesg".into(),
    }
}

fn file_remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::NotFound => "this kernel or device does not have it",
        io::ErrorKind::PermissionDenied => "run it as root",
        io::ErrorKind::ReadOnlyFilesystem => "it is mounted read-only here: run it outside",
        io::ErrorKind::InvalidInput => "the kernel does not take this value",
        _ => "what the kernel says about it: dmesg",
    }
}
