//! Which signals a command acts on.
//!
//! The rule for all commands is that of POSIX shells: a signal that is ignored when the command
//! starts stays ignored. `nohup` ignores SIGHUP for what it starts, and a shell without job control
//! ignores SIGINT and SIGQUIT for what it starts with `&`: they say that this signal is not meant
//! for the command. A signal that has no handler of ours stays ignored by itself, and [`register`]
//! gives none to one that is ignored.

use std::mem::MaybeUninit;
use std::ptr;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The signals that ask a command to end.
pub const ENDING: [i32; 3] = [SIGINT, SIGHUP, SIGTERM];

/// Has `install` give handlers to those of `signals` that this process was not started with
/// ignored.
///
/// One that comes meanwhile is acted on afterwards: signal-hook forgets one that comes between a
/// handler and what it is to do. That is a promise for as long as this process has one thread.
pub fn register<T>(
    signals: impl IntoIterator<Item = i32>,
    install: impl FnOnce(Vec<i32>) -> T,
) -> T {
    let _held_back = hold_back();
    install(signals.into_iter().filter(|&signal| !is_ignored(signal)).collect())
}

/// Keeps every signal that can be blocked from this thread until what this returns is dropped.
/// Both are async-signal-safe.
pub fn hold_back() -> HeldBack {
    let mut all = MaybeUninit::uninit();
    // SAFETY: the pointer is valid; libc alone knows the layout of the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the call has just written it.
    HeldBack { before: set_mask(unsafe { all.assume_init_ref() }) }
}

/// Signals do not reach this thread.
#[must_use]
pub struct HeldBack {
    before: libc::sigset_t,
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        set_mask(&self.before);
    }
}

fn set_mask(mask: &libc::sigset_t) -> libc::sigset_t {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both pointers are valid for the call. No safe call sets the mask of a thread.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, before.as_mut_ptr()) };
    // SAFETY: the call fails for an unknown first argument only, so it has written the old mask.
    unsafe { before.assume_init() }
}

/// Whether a signal is ignored by this process, and so by what it starts.
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is set, and `action` is valid for what is written. No safe call tells what a
    // signal does.
    unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zero is a valid value, and the call has written another or nothing.
    unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use signal_hook::consts::{SIGPIPE, SIGUSR2};
    use signal_hook::{flag, low_level};

    use super::*;

    #[test]
    fn ignored_signals_get_no_handler() {
        // Rust's runtime ignores SIGPIPE before `main`.
        register([SIGPIPE, SIGUSR2], |signals| assert_eq!(signals, [SIGUSR2]));
    }

    /// Without being held back, it would end this process.
    #[test]
    fn a_signal_that_comes_before_its_handler_is_acted_on() {
        let came = Arc::new(AtomicBool::new(false));
        register([SIGUSR2], |signals| {
            low_level::raise(SIGUSR2).unwrap();
            assert!(!came.load(Ordering::Relaxed));
            signals.into_iter().try_for_each(|it| flag::register(it, Arc::clone(&came)).map(drop))
        })
        .unwrap();
        assert!(came.load(Ordering::Relaxed));
    }
}
