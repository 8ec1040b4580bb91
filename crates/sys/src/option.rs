//! Socket options that no safe call takes.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option whose value is an int.
///
/// # Errors
/// Those of `setsockopt`.
pub(crate) fn set(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads `length` bytes at `value`, an int that lives until then.
    // JUSTIFICATION: rustix does not know the options.
    let set = unsafe { libc::setsockopt(socket, level, option, (&raw const value).cast(), length) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
