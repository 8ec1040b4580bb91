//! How a command comes by the right to build hosts.
//!
//! Namespaces and TAP devices want `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`, and entering another mount
//! namespace wants `CAP_SYS_CHROOT`. Root has them. Anyone else can have them inside a user
//! namespace of their own, where the kernel allows that: the user becomes root there, and only over
//! what is created there. Several distributions forbid it with a switch of their own, so a refusal
//! looks for the switch.
//!
//! Only a process with one thread may change its user namespace. A command therefore calls
//! [`become_capable`] before anything else.

use std::{fmt, fs, io};

use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities, unshare_unsafe};

/// Where the right to build hosts comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// The process had the capabilities from the start.
    Root,
    /// The process is root in a user namespace of its own.
    UserNamespace,
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Root => "root",
            Self::UserNamespace => "user namespace",
        })
    }
}

/// Why this process may not build hosts.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// The kernel did not tell the capabilities of this process.
    #[error("read the capabilities of this process: {0}; run as root")]
    Capabilities(#[source] io::Error),
    /// The kernel refused a user namespace.
    #[error("create a user namespace: {0}; {remedy}", remedy = remedy(.0))]
    UserNamespace(#[source] io::Error),
    /// The kernel refused to make this user root in its namespace, by this file.
    #[error("become root in a user namespace by writing {0}: {1}; {remedy}", remedy = remedy(.1))]
    Map(&'static str, #[source] io::Error),
}

/// Makes this process able to create hosts, and says how.
///
/// Call this once, at the start of a command, before the first thread is made.
///
/// # Errors
///
/// If the process is not privileged and cannot have a user namespace of its own; the error names
/// the switch that forbids it, if there is one.
pub fn become_capable() -> Result<Privilege, PrivilegeError> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN | CapabilitySet::SYS_CHROOT;
    if effective()?.contains(needed) {
        return Ok(Privilege::Root);
    }
    enter_user_namespace()?;
    Ok(Privilege::UserNamespace)
}

/// Whether this process may change devices of its network namespace, as far as its own capabilities
/// say: a device of a namespace that is not its user namespace's refuses it all the same.
///
/// # Errors
///
/// If the kernel did not tell the capabilities.
pub fn may_administer_network() -> Result<bool, PrivilegeError> {
    Ok(effective()?.contains(CapabilitySet::NET_ADMIN))
}

fn effective() -> Result<CapabilitySet, PrivilegeError> {
    let held = capabilities(None).map_err(|errno| PrivilegeError::Capabilities(errno.into()))?;
    Ok(held.effective)
}

fn enter_user_namespace() -> Result<(), PrivilegeError> {
    // The ids must be read here: in the new namespace they are unknown until they are mapped.
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: the call is unsafe because CLONE_FILES would part threads from each other's
    // descriptors; CLONE_NEWUSER does not touch descriptors. There is no safe call to leave a user
    // namespace.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }
        .map_err(|errno| PrivilegeError::UserNamespace(errno.into()))?;
    // The kernel takes a group map from an unprivileged writer only once setgroups(2) is given up.
    write_map("/proc/self/setgroups", "deny")?;
    write_map("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write_map("/proc/self/gid_map", &format!("0 {group} 1"))
}

fn write_map(file: &'static str, line: &str) -> Result<(), PrivilegeError> {
    fs::write(file, line).map_err(|cause| PrivilegeError::Map(file, cause))
}

/// The switches that forbid user namespaces: the file, the value that forbids, and the way to
/// allow.
const SWITCHES: [(&str, &str, &str); 3] = [
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
];

fn remedy(cause: &io::Error) -> String {
    if cause.raw_os_error() == Some(libc::EINVAL) {
        return "call become_capable before the first thread is made".to_owned();
    }
    for (file, forbids, allow) in SWITCHES {
        if fs::read_to_string(file).is_ok_and(|value| value.trim() == forbids) {
            return format!("run as root, or allow it: sudo sysctl -w {allow}");
        }
    }
    if cause.raw_os_error() == Some(libc::ENOSPC) {
        return "run as root, or raise the limit: sudo sysctl -w user.max_user_namespaces=10000"
            .to_owned();
    }
    "run as root; in a container, give it --cap-add SYS_ADMIN --cap-add NET_ADMIN \
     --security-opt apparmor=unconfined --device /dev/net/tun"
        .to_owned()
}
