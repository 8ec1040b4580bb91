//! The few signal calls that a forked child may make, which rustix leaves to libc.
//!
//! All of them are async-signal-safe: they neither allocate nor lock.

use std::mem::MaybeUninit;

/// A set of signals as the kernel masks them.
pub(super) type Mask = libc::sigset_t;

/// Blocks every signal that can be blocked for this thread; returns the mask before.
pub(super) fn block_all() -> Mask {
    set_mask(libc::SIG_SETMASK, &all())
}

/// Brings back the mask that [`block_all`] returned.
pub(super) fn restore(before: &Mask) {
    set_mask(libc::SIG_SETMASK, before);
}

fn set_mask(how: libc::c_int, mask: &Mask) -> Mask {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both pointers are valid for the call. A forked child must not run this process's signal
    // handlers, and only a mask set before the fork prevents that.
    unsafe { libc::pthread_sigmask(how, mask, before.as_mut_ptr()) };
    // SAFETY: the call fails for an unknown `how` only, so it has written the old mask.
    unsafe { before.assume_init() }
}

/// Every signal.
fn all() -> Mask {
    let mut mask = MaybeUninit::uninit();
    // SAFETY: the pointer is valid; libc alone knows the layout of the set.
    unsafe { libc::sigfillset(mask.as_mut_ptr()) };
    // SAFETY: the call has just written it.
    unsafe { mask.assume_init() }
}

/// Only `signal`.
fn only(signal: libc::c_int) -> Mask {
    let mut mask = MaybeUninit::uninit();
    // SAFETY: the pointer is valid; libc alone knows the layout of the set.
    unsafe { libc::sigemptyset(mask.as_mut_ptr()) };
    // SAFETY: the set was written by the call before.
    unsafe { libc::sigaddset(mask.as_mut_ptr(), signal) };
    // SAFETY: as before.
    unsafe { mask.assume_init() }
}

/// Waits for the next signal, all being blocked; says which, and whether a process sent it.
pub(super) fn wait() -> Option<(libc::c_int, bool)> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: both pointers are valid for the call. A signal that is waited for needs no handler,
    // which is what makes the relay simple.
    let signal = unsafe { libc::sigwaitinfo(&all(), info.as_mut_ptr()) };
    // SAFETY: zero bytes are a valid `siginfo_t`, and the kernel wrote over them.
    let info = unsafe { info.assume_init() };
    // Zero and below is kill(2) and its kin; the kernel's own signals, a terminal's Ctrl-C for one,
    // have positive codes.
    (signal > 0).then_some((signal, info.si_code <= 0))
}

/// Lets the kernel reap the children of this process.
pub(super) fn ignore_children() {
    // SAFETY: no handler is installed. PID 1 of a host has to get rid of orphans.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Makes children wait to be reaped, whatever this process inherited.
pub(super) fn keep_children() {
    // SAFETY: no handler is installed. With SIGCHLD ignored there would be no status to relay.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Ends this process by `signal`, as if it had been sent.
pub(super) fn die_by(signal: libc::c_int) -> ! {
    // SAFETY: no handler is installed. The default action is what ends the process.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: plain call. rustix cannot name real-time signals.
    unsafe { libc::raise(signal) };
    set_mask(libc::SIG_UNBLOCK, &only(signal));
    // Not reached: a signal that ended the program ends this process too.
    exit(128 + signal)
}

/// Ends this process without running anything of the process it was forked from.
pub(super) fn exit(status: libc::c_int) -> ! {
    // SAFETY: always sound. `std::process::exit` would run exit handlers that belong to the parent.
    unsafe { libc::_exit(status) }
}

/// Closes all descriptors from `first` to `last`.
///
/// # Safety
///
/// Nothing in this process may use any of them afterwards.
pub(super) unsafe fn close_range(first: libc::c_uint, last: libc::c_uint) {
    // SAFETY: by contract. A forked child must not keep the parent's pipes open, and cannot know them.
    // The system call, because older C libraries have no function for it.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}
