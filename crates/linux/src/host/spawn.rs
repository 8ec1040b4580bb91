//! How a program gets into a host.
//!
//! A process that joins a PID namespace does so for its children only. The child that
//! [`Command`] forks therefore joins the namespaces and forks again: the inner process executes the
//! program, the outer one stays outside as its *relay*. To whoever started the command the relay is the
//! program: it ends with the same status or by the same signal, and passes on the signals it is sent.
//!
//! Everything here runs after a fork of a process that may have many threads, so it makes system calls
//! only: no allocation, no lock, no panic.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, chdir, getppid, set_dumpable_behavior,
    set_parent_process_death_signal, waitpid,
};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use super::signals;

/// A command whose program runs in the host that `holder` refers to.
pub(super) fn command(program: &OsStr, holder: OwnedFd) -> Command {
    let mut command = Command::new(program);
    // SAFETY: `enter` and what it calls are async-signal-safe, as the module says.
    // A program cannot be put into namespaces from outside; its process has to enter them itself.
    unsafe { command.pre_exec(move || enter(&holder)) };
    command
}

/// Moves this process into the host and forks; returns in the inner process only.
fn enter(holder: &OwnedFd) -> io::Result<()> {
    let mut buffer = [0; libc::PATH_MAX as usize];
    let directory = current_directory(&mut buffer);
    let all = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::PROCESS_ID;
    move_into_thread_name_spaces(holder.as_fd(), all)?;
    // Joining a mount namespace leads to its root directory, which also has to do for a directory that
    // was removed, may not be reached from the root, or is hidden below /run.
    let _ = directory.map(chdir);

    // From before the fork, so that no signal is lost between the fork and the first wait.
    let before = signals::block_all();
    signals::keep_children();
    // SAFETY: this process has one thread, being forked from a multi-threaded one just now.
    // std can fork once per command, and rustix not at all.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The relay is out of sight from within the host, so it has no number here. If there is
            // one, it is the holder's: the relay was killed before the line above.
            if getppid().is_some() {
                signals::exit(1);
            }
            signals::restore(&before);
            Ok(())
        }
        program => match Pid::from_raw(program) {
            Some(program) => relay(program),
            None => signals::exit(1),
        },
    }
}

/// The working directory, in a buffer of this function's caller, since a forked child must not allocate.
fn current_directory(buffer: &mut [u8]) -> io::Result<&CStr> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes. rustix and std would allocate.
    let length = unsafe { libc::syscall(libc::SYS_getcwd, buffer.as_mut_ptr(), buffer.len()) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    CStr::from_bytes_until_nul(buffer).map_err(|_| io::ErrorKind::InvalidFilename.into())
}

/// Stands for the program outside of the host until it ends.
fn relay(program: Pid) -> ! {
    // SAFETY: the relay uses no descriptor. Were they open here, readers of the program's output would
    // see no end of file, and std no end of its own pipe that reports a failed execution.
    unsafe { signals::close_range(0, libc::c_uint::MAX) };
    let _ = rustix::thread::set_name(c"earmark-relay");
    loop {
        match signals::wait() {
            Some((libc::SIGCHLD, _)) => {
                if let Ok(Some((_, status))) = waitpid(Some(program), WaitOptions::NOHANG) {
                    end_like(status);
                }
            }
            // A terminal sends its signals to the program too; to pass them on would double them.
            Some((signal, from_process)) if from_process => pass_on(program, signal),
            _ => {}
        }
    }
}

fn pass_on(program: Pid, signal: libc::c_int) {
    // SAFETY: plain call; the program is not reaped yet, so the number is still its own.
    // rustix cannot name real-time signals.
    unsafe { libc::kill(program.as_raw_pid(), signal) };
}

/// Ends the relay as the program ended.
fn end_like(status: WaitStatus) -> ! {
    if let Some(signal) = status.terminating_signal() {
        // The program has left its core already, if it was to leave one.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        signals::die_by(signal);
    }
    signals::exit(status.exit_status().unwrap_or(1))
}
