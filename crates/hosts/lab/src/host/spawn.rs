//! How a program gets into a host.
//!
//! A new process starts in the namespaces of the *thread* that made it. So a short-lived thread
//! joins the namespaces of the host and starts the program from there. To join a mount namespace,
//! the thread first parts with the root and working directory that it shares with the other
//! threads; the PID namespace that it joins is that of its children only.
//!
//! The program is then an ordinary child of this process that happens to be somewhere else: its
//! status, its signals and its pipes are its own, with nothing in between.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Output, Stdio};
use std::{env, thread};

use rustix::process::{Pid, PidfdFlags, chdir, pidfd_open};
use rustix::thread::{
    ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces, unshare_unsafe,
};

use super::Host;
use crate::error::LabError;

impl Host {
    /// Starts a command inside this host, in its own working directory, that of this process, or
    /// `/` if the host has no such directory.
    ///
    /// The child is like any other, and [`Child::id`] is its number outside of the host. When the
    /// host is dropped or this process ends, it is killed.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, LabError> {
        self.start(command, || Ok(())).map_err(|cause| self.start_error(command, cause))
    }

    /// Starts a command from a thread that `confine` has taken rights from, which the command then
    /// does not have either.
    pub(crate) fn spawn_confined(
        &self,
        command: &mut Command,
        confine: impl FnOnce() -> io::Result<()> + Send,
    ) -> Result<Child, LabError> {
        let mut refused = None;
        let started = self.start(command, || {
            confine().map_err(|cause| {
                refused = Some(cause);
                io::ErrorKind::PermissionDenied.into()
            })
        });
        match refused {
            Some(cause) => {
                let what = format!("confine the guest of host {}", self.name());
                let remedy = "in a container, give it --cap-add SYS_ADMIN --cap-add SETPCAP \
                              --security-opt apparmor=unconfined";
                Err(LabError::new(what, cause, remedy))
            }
            None => started.map_err(|cause| self.start_error(command, cause)),
        }
    }

    /// Runs a command inside this host and collects its output, as [`Command::output`] does.
    pub fn output(&self, command: &mut Command) -> Result<Output, LabError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.spawn(command)?;
        child.wait_with_output().map_err(|cause| self.start_error(command, cause))
    }

    fn start(
        &self,
        command: &mut Command,
        prepare: impl FnOnce() -> io::Result<()> + Send,
    ) -> io::Result<Child> {
        let mut child = start_inside(self.holder.pidfd(), command, prepare)?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => {
                self.holder.remember(pidfd);
                Ok(child)
            }
            Err(errno) => {
                child.kill()?;
                child.wait()?;
                Err(errno.into())
            }
        }
    }

    fn start_error(&self, command: &Command, cause: io::Error) -> LabError {
        LabError::start(&command.get_program().to_string_lossy(), self.name(), cause)
    }

    /// Runs `work` on a thread that is in this host in every way but one, and waits for it: its
    /// process is still this one. Files are those that the host sees, its `/run` above all.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, LabError> {
        visit(self.holder.pidfd(), work).map_err(|cause| self.enter_error(cause))
    }

    /// Listens on a socket in the files of this host, which vanishes with the host. No other
    /// process on the machine has that path.
    pub fn listen(&self, path: &str) -> Result<UnixListener, LabError> {
        self.enter(|| UnixListener::bind(path))?.map_err(|cause| {
            let what = format!("listen on {path} in host {}", self.name());
            LabError::new(what, cause, "choose a path that is free")
        })
    }
}

fn start_inside(
    holder: BorrowedFd<'_>,
    command: &mut Command,
    prepare: impl FnOnce() -> io::Result<()> + Send,
) -> io::Result<Child> {
    let directory = env::current_dir();
    visit(holder, || {
        prepare()?;
        // Joining a mount namespace leads to its root directory, which also has to do for a
        // directory that was removed, may not be reached from the root, or is hidden below /run.
        let _ = directory.map(chdir);
        command.spawn()
    })?
}

/// Runs `work` on a thread that has joined all namespaces of the holder.
fn visit<R: Send>(holder: BorrowedFd<'_>, work: impl FnOnce() -> R + Send) -> io::Result<R> {
    let namespaces = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::PROCESS_ID;
    let visit = || {
        // SAFETY: the call is unsafe because CLONE_FILES would part threads from each other's
        // descriptors; CLONE_FS parts this thread from their directories only. There is no safe
        // call for that, and without it the kernel refuses to change the mount namespace.
        unsafe { unshare_unsafe(UnshareFlags::FS) }?;
        move_into_thread_name_spaces(holder, namespaces)?;
        Ok(work())
    };
    thread::scope(|scope| {
        let visitor = thread::Builder::new().spawn_scoped(scope, visit)?;
        visitor.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
