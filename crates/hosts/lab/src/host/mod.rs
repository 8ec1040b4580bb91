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

use std::{io, thread};

use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use crate::station::Station;
use holder::{Blueprint, Holder};
use sys::netlink::Netlink;

use crate::error::LabError;

/// The longest name of a host: its interface, named after it, may have 15 bytes.
pub const MAX_NAME: usize = 14;

/// A Linux host. Dropping it ends every program in it.
#[derive(Debug)]
pub struct Host {
    name: String,
    holder: Holder,
}

impl Host {
    /// Creates a host that knows `stations` (itself among them) by name. Its loopback interface is
    /// up.
    pub fn create(name: &str, stations: &[Station]) -> Result<Self, LabError> {
        if !is_host_name(name) {
            return Err(LabError::refused(format!(
                "create host {name:?}: not a host name; use 1 to {MAX_NAME} letters, digits or '-'"
            )));
        }
        let holder = Holder::start(&Blueprint::new(name, stations))?;
        let host = Self { name: name.to_owned(), holder };
        host.enter_net(|| Netlink::open()?.up("lo"))??;
        Ok(host)
    }

    /// The name of the host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process that holds the host, for `nsenter --target PID --all` and the like.
    pub fn pid(&self) -> u32 {
        self.holder.pid()
    }

    /// Whether the host still runs; it does until its holder is killed from outside.
    pub fn is_alive(&self) -> bool {
        self.holder.is_alive()
    }

    /// Runs `work` on a thread that is in the network of this host, and waits for it.
    ///
    /// A socket or device opened there stays in that network wherever it is used afterwards.
    pub fn enter_net<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, LabError> {
        let fail = |cause| self.enter_error(cause);
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

    fn enter_error(&self, cause: io::Error) -> LabError {
        let what = format!("enter the network of host {}", self.name);
        LabError::new(what, cause, "create the host anew if its holder was killed")
    }
}

fn is_host_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}
