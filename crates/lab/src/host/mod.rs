//! A Linux host made of namespaces.
//!
//! A host is one child process, its *holder*, that is process 1 of its own PID namespace and owns a
//! network, a mount, a UTS and an IPC namespace besides. It does nothing but wait. There is no name
//! in `/run/netns` and no file anywhere: the host is that process, and ends with it.
//!
//! ```text
//! this process ──life-line──> holder (process 1 of the host)
//!      │                         ╎
//!      └─────────────────────────╎──> programs
//! ```
//!
//! The holder reads from a *life-line*, a socket whose other end this process alone holds. When
//! this process ends, in whatever way, the kernel closes that end, the holder sees the end of file
//! and exits, the kernel kills everything in the PID namespace, and the network namespace goes with
//! its last process. Nothing needs to be cleaned up, so nothing can be forgotten. (If this process
//! is killed, the dead programs are left to process 1 of the machine to reap, as any orphan is.)
//!
//! A program enters through [`Host::spawn`], which starts it from a thread that has joined the
//! namespaces.
//!
//! What a host has of its own: its name, its network, its processes, its System V IPC, a `/run`
//! with the machine's directories and none of its files, and an `/etc/hosts` that knows its peers.
//! Everything else, files above all, it shares with the machine.
//!
//! It takes Linux 5.9 or newer (`setns` by pidfd, `close_range`), and the rights that
//! [`become_capable`](sys::privilege::become_capable) gives.

mod forked;
mod holder;
mod spawn;

use std::io;
use std::thread;

use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use holder::{Blueprint, Holder};
use sys::netlink::{Netlink, NetlinkError};
use sys::station::Station;

pub use holder::Step;

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

/// A Linux host. Dropping it ends every program in it.
#[derive(Debug)]
pub struct Host {
    name: String,
    holder: Holder,
}

impl Host {
    /// Creates a host that knows `stations` (itself among them) by name. Its loopback interface is
    /// up.
    ///
    /// # Errors
    ///
    /// If the name is no host name, this process lacks the rights, or the kernel refuses a step.
    pub fn create(name: &str, stations: &[Station]) -> Result<Self, HostError> {
        if !is_host_name(name) {
            return Err(HostError::Name(name.to_owned()));
        }
        let holder = Holder::start(&Blueprint::new(name, stations))?;
        let host = Self { name: name.to_owned(), holder };
        host.enter_net(|| Netlink::open()?.up("lo"))??;
        Ok(host)
    }

    /// The name of the host.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process that holds the host, for `nsenter --target PID --all` and the like.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.holder.pid()
    }

    /// Whether the host still runs; it does until its holder is killed from outside.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.holder.is_alive()
    }

    /// Runs `work` on a thread that is in the network of this host, and waits for it.
    ///
    /// A socket or device opened there stays in that network wherever it is used afterwards.
    ///
    /// # Errors
    ///
    /// If the host is gone or there can be no thread. A panic in `work` is passed on.
    pub fn enter_net<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, HostError> {
        let fail = |cause| HostError::Enter { host: self.name.clone(), cause };
        thread::scope(|scope| {
            let visitor = thread::Builder::new()
                .name(format!("in-{}", self.name))
                .spawn_scoped(scope, || {
                    let network = ThreadNameSpaceType::NETWORK;
                    move_into_thread_name_spaces(self.holder.pidfd(), network)?;
                    Ok(work())
                })
                .map_err(fail)?;
            match visitor.join() {
                Ok(outcome) => outcome.map_err(fail),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

fn is_host_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}
