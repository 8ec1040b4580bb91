//! The few calls of a forked child that rustix leaves to libc.
//!
//! All of them are async-signal-safe: they neither allocate nor lock.

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
