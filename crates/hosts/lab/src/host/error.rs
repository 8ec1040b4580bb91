//! Why a host cannot be.

use std::io;

use sys::netlink::NetlinkError;

use super::step::Step;

/// The longest name of a host: its interface, named after it, may have 15 bytes.
pub const MAX_NAME: usize = 14;

/// Why a host could not be made or entered.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The name would not do as a host name and an interface name.
    #[error("create host {0:?}: not a host name; use 1 to {MAX_NAME} letters, digits or '-'")]
    Name(String),
    /// There is no life-line.
    #[error(
        "create the life-line of host {host}: {cause}; check the limit on open files: ulimit -n"
    )]
    LifeLine {
        /// The name of the host.
        host: String,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// The kernel refused the namespaces.
    #[error("create the namespaces of host {host}: {cause}; {remedy}",
            remedy = clone_remedy(.cause))]
    Clone {
        /// The name of the host.
        host: String,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// The holder could not set the host up.
    #[error("{step} in host {host}: {cause}; {remedy}", remedy = .step.remedy())]
    Setup {
        /// The name of the host.
        host: String,
        /// What the holder was doing.
        step: Step,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// The holder ended before it was ready.
    #[error("set up host {host}: its holder was killed; look for the reason with: dmesg")]
    Died {
        /// The name of the host.
        host: String,
    },
    /// The network namespace of the host could not be joined.
    #[error(
        "enter the network of host {host}: {cause}; create the host anew if its holder was killed"
    )]
    Enter {
        /// The name of the host.
        host: String,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// A program could not be started in the host.
    #[error("start {program} in host {host}: {cause}; {remedy}", remedy = start_remedy(.cause))]
    Start {
        /// The name of the host.
        host: String,
        /// The name of the program.
        program: String,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// The rights of a program could not be taken from it.
    #[error(
        "confine the guest of host {host}: {cause}; in a container, give it --cap-add SYS_ADMIN \
         --cap-add SETPCAP --security-opt apparmor=unconfined"
    )]
    Confine {
        /// The name of the host.
        host: String,
        /// What was refused.
        #[source]
        cause: io::Error,
    },
    /// A socket could not be made in the host.
    #[error("listen on {path} in host {host}: {cause}; choose a path that is free")]
    Listen {
        /// The name of the host.
        host: String,
        /// Where the socket was to be.
        path: String,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// The loopback interface of the host did not come up.
    #[error(transparent)]
    Loopback(#[from] NetlinkError),
}

fn clone_remedy(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::ENOSPC) => {
            "raise the limits: sudo sysctl -w user.max_net_namespaces=10000 \
             user.max_pid_namespaces=10000"
        }
        Some(libc::EAGAIN) => "raise the limit on processes: ulimit -u",
        _ => "run as root, or allow user namespaces: sudo sysctl -w user.max_user_namespaces=10000",
    }
}

fn start_remedy(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::ENOENT) => "check that it is installed and in PATH",
        Some(libc::EACCES) => "check that it may be executed: ls -l",
        Some(libc::ESRCH | libc::ENOMEM) => "create the host anew if its holder was killed",
        _ => "check the limits on processes and open files: ulimit -u -n",
    }
}
