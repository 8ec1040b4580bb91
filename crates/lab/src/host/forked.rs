//! The few calls of a forked child that rustix leaves to libc.
//!
//! All of them are async-signal-safe: they neither allocate nor lock.

use std::mem::MaybeUninit;

/// A set of signals as the kernel masks them.
pub(super) type Mask = libc::sigset_t;

/// Blocks every signal that can be blocked for this thread; returns the mask before.
pub(super) fn block_signals() -> Mask {
    let mut all = MaybeUninit::uninit();
    // SAFETY: the pointer is valid; libc alone knows the layout of the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the call has just written it.
    set_mask(unsafe { all.assume_init_ref() })
}

/// Brings back the mask that [`block_signals`] returned.
pub(super) fn restore_signals(before: &Mask) {
    set_mask(before);
}

fn set_mask(mask: &Mask) -> Mask {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both pointers are valid for the call. A forked child must not run this process's
    // signal handlers, and only a mask set before the fork prevents that.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, before.as_mut_ptr()) };
    // SAFETY: the call fails for an unknown first argument only, so it has written the old mask.
    unsafe { before.assume_init() }
}

/// Lets the kernel reap the children of this process.
pub(super) fn ignore_children() {
    // SAFETY: no handler is installed. Process 1 of a host has to get rid of orphans.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
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
    // SAFETY: by contract. A forked child must not keep the parent's pipes open, and cannot know
    // them. The system call, because older C libraries have no function for it.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}
