//! Which signals a command acts on.
//!
//! The rule for all commands is that of POSIX shells: a signal that is ignored when the command
//! starts stays ignored. `nohup` ignores SIGHUP for what it starts, and a shell without job control
//! ignores SIGINT and SIGQUIT for what it starts with `&`: they say that this signal is not meant
//! for the command. A signal that has no handler of ours stays ignored by itself; a handler is
//! installed only for what [`not_ignored`] leaves.

use std::mem::MaybeUninit;
use std::ptr;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The signals that ask a command to end.
pub const ENDING: [i32; 3] = [SIGINT, SIGHUP, SIGTERM];

/// Those of `signals` that may have a handler: this process was not started with them ignored.
pub fn not_ignored(signals: impl IntoIterator<Item = i32>) -> impl Iterator<Item = i32> {
    signals.into_iter().filter(|&signal| !is_ignored(signal))
}

fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is set, and `action` is valid for what is written. No safe call tells what a
    // signal does.
    unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zero is a valid value, and the call has written another or nothing.
    unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use signal_hook::consts::{SIGPIPE, SIGUSR2};

    use super::*;

    #[test]
    fn ignored_signals_get_no_handler() {
        // Rust's runtime ignores SIGPIPE before `main`.
        assert_eq!(not_ignored([SIGPIPE, SIGUSR2]).collect::<Vec<_>>(), [SIGUSR2]);
    }
}
