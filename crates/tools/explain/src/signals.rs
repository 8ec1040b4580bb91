//! Signals that ask `earmark explain -- CMD` to end: the program gets them, too.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ExitStatus};

use anyhow::{Context, Result};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::SIGINT;
use sys::signals::{ENDING, register};

/// Signals that have come and are not passed on yet.
pub(super) struct Signals {
    coming: signal_hook::iterator::Signals,
    is_repeated: bool,
}

impl Signals {
    /// From now on signals do not end this process.
    pub(super) fn watch() -> Result<Self> {
        let coming = register(ENDING, signal_hook::iterator::Signals::new);
        Ok(Self { coming: coming.context("take signals")?, is_repeated: false })
    }

    /// Passes on what has come; whether something has.
    pub(super) fn pass_on(&mut self, child: &Child) -> Result<bool> {
        let mut any = false;
        for signal in self.coming.pending() {
            pass_on(&open(child)?, signal, &mut self.is_repeated);
            any = true;
        }
        Ok(any)
    }

    /// Waits for the end of the program, and passes on what comes until then.
    pub(super) fn until_end(self, child: &mut Child) -> Result<ExitStatus> {
        let Self { mut coming, mut is_repeated } = self;
        let program = open(child)?;
        let handle = coming.handle();
        let thread = std::thread::spawn(move || {
            for signal in coming.forever() {
                pass_on(&program, signal, &mut is_repeated);
            }
        });
        let status = child.wait().context("wait for the program");
        handle.close();
        let _ = thread.join();
        status
    }
}

/// The program, by a descriptor: its number may be another's as soon as it has ended.
fn open(child: &Child) -> Result<OwnedFd> {
    pidfd_open(Pid::from_child(child), PidfdFlags::empty()).context("open the program")
}

/// Sends a signal, unless it is the first Ctrl-C at a terminal, which reaches the program by
/// itself; a program that has ended needs none.
fn pass_on(program: &impl AsFd, signal: i32, is_repeated: &mut bool) {
    let is_by_itself = signal == SIGINT && !*is_repeated && is_in_foreground();
    if let Some(signal) = Signal::from_named_raw(signal).filter(|_| !is_by_itself) {
        let _ = pidfd_send_signal(program, signal);
    }
    *is_repeated = true;
}

/// Whether a terminal sends its signals to the group of this process, which is the program's.
fn is_in_foreground() -> bool {
    std::fs::read_to_string("/proc/self/stat").is_ok_and(|stat| owns_terminal(&stat))
}

/// Whether the group of a process is in the foreground of its terminal (`proc_pid_stat(5)`).
fn owns_terminal(stat: &str) -> bool {
    // The name before may have anything in it. After it: state, parent, group, session, terminal,
    // and the group in the terminal's foreground.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    fields.get(5).is_some_and(|foreground| fields.get(2) == Some(foreground))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_in_the_foreground_is_distinguished_from_others() {
        assert!(owns_terminal("7 (a) b) S 1 7 5 34816 7 4194304 1"));
        assert!(!owns_terminal("7 (sh) S 1 7 5 34816 9 4194304 1"));
        // No terminal.
        assert!(!owns_terminal("7 (sh) S 1 7 7 0 -1 4194304 1"));
        assert!(!owns_terminal(""));
    }
}
