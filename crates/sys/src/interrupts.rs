//! SIGINT, and whether the programs of the hosts have it as well.
//!
//! A terminal sends Ctrl-C to its whole foreground group, and the programs are in it. A script that
//! sends SIGINT to one process reaches that one alone. The kernel says which it was: `si_code` is
//! `SI_KERNEL` for a terminal.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::consts::SIGINT;

use crate::signals::not_ignored;

/// `si_code` of a signal that the kernel sends, as for Ctrl-C; siginfo.h.
const SI_KERNEL: i32 = 0x80;

/// Programs that have the signal by themselves get this time to end, so that few have it twice: one
/// that is sent to a process group by hand looks like one that is sent to this process alone.
const GRACE: Duration = Duration::from_millis(100);

/// Lets this process outlive the first SIGINT and passes it on to the programs of its hosts if they
/// do not have it; a second one ends this process with `status`. Tells whether there was one.
///
/// Programs have it if they are in the process group of this process, as after Ctrl-C. A SIGINT
/// that is ignored stays so ([`signals`](crate::signals)).
///
/// # Errors
/// If the signal, a pipe or a thread cannot be had.
pub fn outlive(status: i32) -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    if not_ignored([SIGINT]).next().is_none() {
        return Ok(interrupted);
    }
    signal_hook::flag::register_conditional_shutdown(SIGINT, status, Arc::clone(&interrupted))?;
    signal_hook::flag::register(SIGINT, Arc::clone(&interrupted))?;
    let (wakes, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    rustix::fs::fcntl_setfl(&wakes, rustix::fs::OFlags::empty())?;
    note_origin(wake)?;
    let pass_on = move || {
        let mut wakes = File::from(wakes);
        while wakes.read_exact(&mut [0]).is_ok() {
            thread::sleep(GRACE);
            pass_on();
        }
    };
    thread::Builder::new().name("interrupts".into()).spawn(pass_on)?;
    Ok(interrupted)
}

/// Writes a byte for each SIGINT that a process has sent.
fn note_origin(wake: OwnedFd) -> io::Result<()> {
    let action = move |info: &libc::siginfo_t| {
        if info.si_code != SI_KERNEL {
            let _ = rustix::io::write(&wake, &[0]);
        }
    };
    // SAFETY: the action compares a number and makes one system call that does not block; both are
    // async-signal-safe. No safe call tells where a signal comes from.
    unsafe { signal_hook_registry::register_sigaction(SIGINT, action) }.map(|_| ())
}

/// Sends SIGINT to the programs that this process has started, and to what they have started, as
/// far as these are in its process group.
fn pass_on() {
    let (me, group) = (std::process::id(), getpgrp().as_raw_nonzero().get().unsigned_abs());
    let processes = processes();
    let parent =
        |pid| processes.iter().find(|process| process.pid == pid).map(|found| found.parent);
    for process in processes.iter().filter(|process| process.group == group) {
        // No process has that many ancestors; parents may change while this looks.
        let mut ancestors = std::iter::successors(Some(process.parent), |pid| parent(*pid));
        if ancestors.by_ref().take(1000).any(|pid| pid == me)
            && let Some(pid) = Pid::from_raw(process.pid.cast_signed())
        {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::INT);
        }
    }
}

struct Process {
    pid: u32,
    parent: u32,
    group: u32,
}

fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // PID (NAME) STATE PPID PGRP; a name may have blanks and brackets.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        Some(Process { pid, parent, group: fields.next()?.parse().ok()? })
    })
    .collect()
}
