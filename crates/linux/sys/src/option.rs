//! Socket options that no safe call takes.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option whose value is an int.
pub fn set_int(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: an int refers to nothing; from an option that takes more the kernel wants more bytes.
    // JUSTIFICATION: rustix does not know the options.
    unsafe { set(socket, level, option, &value) }
}

/// Sets an option whose value is the bytes of a `T`.
///
/// # Safety
/// The kernel takes a `T` for this option, and whatever `T` points to.
pub unsafe fn set<T>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `value` has `length` bytes and outlives the call; the caller vouches for what they
    // mean.
    // JUSTIFICATION: rustix does not know the options.
    let outcome =
        unsafe { libc::setsockopt(fd, level, option, (&raw const *value).cast(), length) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option into words; those that the kernel does not write stay 0.
pub fn words<const N: usize>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<[u32; N]> {
    let mut words = [0; N];
    let mut length = size_of::<[u32; N]>() as libc::socklen_t;
    let (fd, to) = (socket.as_fd().as_raw_fd(), words.as_mut_ptr().cast());
    // SAFETY: the kernel writes at most `length` bytes to `words`, and any bytes are words.
    // JUSTIFICATION: rustix does not know the options.
    let outcome = unsafe { libc::getsockopt(fd, level, option, to, &raw mut length) };
    if outcome == 0 { Ok(words) } else { Err(io::Error::last_os_error()) }
}
