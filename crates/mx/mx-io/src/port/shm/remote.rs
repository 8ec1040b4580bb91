//! The memory of another process: data are copied from there to where they belong, once, and by the
//! kernel (`process_vm_readv(2)`).

use std::fs;
use std::io::IoSliceMut;

use rustix::process::{DumpableBehavior, dumpable_behavior, getpid};
use rustix::thread::{CapabilitySet, capabilities};

#[derive(Clone, Copy, Debug)]
pub(super) struct Remote {
    process: libc::pid_t,
}

impl Remote {
    pub(super) const fn of(process: u32) -> Self {
        Self { process: process as libc::pid_t }
    }

    /// Fills `place` with what lies at `at`; `false` if the kernel does not permit it, as with
    /// `kernel.yama.ptrace_scope` above 0, or there is nothing.
    pub(super) fn read(self, at: u64, place: &mut [u8]) -> bool {
        let length = place.len();
        let from = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: length };
        let mut to = [IoSliceMut::new(place)];
        // SAFETY: `IoSliceMut` has the layout of `iovec`, and the kernel writes at most `length`
        // bytes to `place`. It checks the other address, which is not one of this process.
        // JUSTIFICATION: rustix has no call for it.
        let count = unsafe {
            libc::process_vm_readv(self.process, to.as_mut_ptr().cast(), 1, &raw const from, 1, 0)
        };
        usize::try_from(count).is_ok_and(|count| count == length)
    }
}

/// Who may trace processes, and read their memory (`Documentation/admin-guide/LSM/Yama.rst`).
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";
/// The value of it with which no process may, whatever its rights.
const NO_PROCESS: u8 = 3;

/// Why another process of this user and program could not read the memory of this one, nor this one
/// that of the other, as far as this one can tell; and what helps.
#[must_use]
pub fn memory_obstacle() -> Option<String> {
    let byte = 7_u8;
    let mut read = [0];
    let this = Remote::of(getpid().as_raw_nonzero().get() as u32);
    if !this.read(&raw const byte as u64, &mut read) || read != [byte] {
        return Some(
            "the system call process_vm_readv is not permitted here, so that long messages within \
             this host are copied twice; a container may need another seccomp profile"
                .to_owned(),
        );
    }
    let sets = capabilities(None).ok();
    if sets.is_some_and(|sets| sets.effective.contains(CapabilitySet::SYS_PTRACE)) {
        return scope().filter(|scope| *scope >= NO_PROCESS).map(closed);
    }
    if dumpable_behavior().is_ok_and(|is| is != DumpableBehavior::Dumpable) {
        return Some(
            "this program has more rights than its user (setcap), so that others of that user may \
             not read its memory, and long messages within this host are copied twice"
                .to_owned(),
        );
    }
    scope().filter(|scope| *scope > 0).map(closed)
}

fn scope() -> Option<u8> {
    fs::read_to_string(YAMA).ok()?.trim().parse().ok()
}

fn closed(scope: u8) -> String {
    format!(
        "kernel.yama.ptrace_scope is {scope}: processes may not read each other's memory, so that \
         long messages within this host are copied twice; to allow it: sysctl \
         kernel.yama.ptrace_scope=0"
    )
}
