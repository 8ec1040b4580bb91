//! Socket options that no safe call takes.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Sets an option whose value is the bytes of a `T`.
///
/// # Safety
/// The kernel takes a `T` for this option, and whatever `T` points to.
pub(super) unsafe fn set<T>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let fd = socket.as_raw_fd();
    // SAFETY: `value` has `length` bytes and outlives the call; the caller vouches for what they
    // mean.
    // JUSTIFICATION: rustix has no call for these options.
    let outcome =
        unsafe { libc::setsockopt(fd, level, option, (&raw const *value).cast(), length) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option into words; those that the kernel does not write stay 0.
pub(super) fn words<const N: usize>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<[u32; N]> {
    let mut words = [0; N];
    let mut length = size_of::<[u32; N]>() as libc::socklen_t;
    let (fd, to) = (socket.as_raw_fd(), words.as_mut_ptr().cast());
    // SAFETY: the kernel writes at most `length` bytes to `words`, and any bytes are words.
    // JUSTIFICATION: rustix has no call for these options.
    let outcome = unsafe { libc::getsockopt(fd, level, option, to, &raw mut length) };
    if outcome == 0 { Ok(words) } else { Err(io::Error::last_os_error()) }
}

/// Asks for that much room for what waits to be received and sent, beyond the limits of the system
/// if that is allowed, as far as it gives otherwise.
pub(super) fn set_room(socket: impl AsFd, receive: Option<usize>, send: usize) {
    use rustix::net::sockopt::{
        set_socket_recv_buffer_size, set_socket_recv_buffer_size_force,
        set_socket_send_buffer_size, set_socket_send_buffer_size_force,
    };
    let socket = socket.as_fd();
    if let Some(receive) = receive
        && set_socket_recv_buffer_size_force(socket, receive).is_err()
    {
        // Less room is no reason to give up: what is lost is sent again.
        let _ = set_socket_recv_buffer_size(socket, receive);
    }
    if set_socket_send_buffer_size_force(socket, send).is_err() {
        let _ = set_socket_send_buffer_size(socket, send);
    }
}

/// Lets a socket for datagrams put together those that come in a row from one sender (`UDP_GRO`).
pub(super) fn merge_datagrams(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option takes a number.
    // JUSTIFICATION: rustix has no call for it.
    unsafe { set(socket, libc::SOL_UDP, libc::UDP_GRO, &on) }
}

/// How many datagrams or frames came while a socket had no room for them.
pub(super) fn dropped(socket: BorrowedFd<'_>) -> u64 {
    /// Words of what `SO_MEMINFO` tells (`SK_MEMINFO_VARS`).
    const WORDS: usize = 9;
    let memory = words::<WORDS>(socket, libc::SOL_SOCKET, libc::SO_MEMINFO);
    memory.map_or(0, |words| words[libc::SK_MEMINFO_DROPS as usize].into())
}

/// The error that has befallen the socket since this was last asked.
pub(super) fn error(socket: impl AsFd) -> Result<(), Errno> {
    rustix::net::sockopt::socket_error(socket).and_then(|error| error)
}
