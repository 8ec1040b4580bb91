//! What ports of several kinds do with their sockets.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use sys::option;

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
    option::set_int(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// How many datagrams or frames came while a socket had no room for them.
pub(super) fn dropped(socket: BorrowedFd<'_>) -> u64 {
    /// Words of what `SO_MEMINFO` tells (`SK_MEMINFO_VARS`).
    const WORDS: usize = 9;
    let memory = option::words::<WORDS>(socket, libc::SOL_SOCKET, libc::SO_MEMINFO);
    memory.map_or(0, |words| words[libc::SK_MEMINFO_DROPS as usize].into())
}

/// The error that has befallen the socket since this was last asked.
pub(super) fn error(socket: impl AsFd) -> Result<(), Errno> {
    rustix::net::sockopt::socket_error(socket).and_then(|error| error)
}
