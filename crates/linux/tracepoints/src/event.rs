//! One event: `perf_event_open(2)` and what can be asked of it.

use std::ffi::{CString, c_int, c_long, c_ulong};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::attributes::Attributes;

/// Starts counting: `_IO('$', 0)`.
const ENABLE: c_ulong = 0x2400;
/// Stops counting: `_IO('$', 1)`.
const DISABLE: c_ulong = 0x2401;
/// Shares another event's buffer: `_IO('$', 5)`.
const SET_OUTPUT: c_ulong = 0x2405;
/// `_IOW('$', 6, char *)`.
const SET_FILTER: c_ulong = 0x4000_2406 | (size_of::<usize>() as c_ulong) << 16;

/// Close on exec (`PERF_FLAG_FD_CLOEXEC`).
const CLOEXEC: c_ulong = 1 << 3;

#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

impl Event {
    pub(super) fn open(attributes: &Attributes, pid: i32, cpu: u32) -> io::Result<Self> {
        let (group, attributes): (c_int, *const Attributes) = (-1, attributes);
        // SAFETY: the attributes have the size that they tell, and outlive the call.
        // JUSTIFICATION: neither libc nor rustix has a call for it.
        let opened: c_long = unsafe {
            libc::syscall(libc::SYS_perf_event_open, attributes, pid, cpu as c_int, group, CLOEXEC)
        };
        if opened < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor, and it has no other owner.
        // JUSTIFICATION: the call returns a number.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(opened as c_int) }))
    }

    pub(super) fn write_into(&self, other: &Self) -> io::Result<()> {
        self.ask(SET_OUTPUT, other.0.as_raw_fd() as c_ulong)
    }

    /// Lets only those pass of whose fields `filter` is true, such as `name == "eth0"`.
    pub(super) fn filter(&self, filter: &str) -> io::Result<()> {
        let filter = CString::new(filter).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.ask(SET_FILTER, filter.as_ptr() as c_ulong)
    }

    pub(super) fn switch(&self, on: bool) -> io::Result<()> {
        self.ask(if on { ENABLE } else { DISABLE }, 0)
    }

    fn ask(&self, request: c_ulong, argument: c_ulong) -> io::Result<()> {
        // SAFETY: the argument is a number, or, for a filter, the address of a C string that
        // outlives the call.
        // JUSTIFICATION: rustix has no call for it.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, argument) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.0)
    }
}
