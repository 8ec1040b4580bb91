//! Waiting for a descriptor.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

/// Waits until a socket takes datagrams, or bytes of a stream, again.
pub fn wait_writable(socket: impl AsFd) -> io::Result<()> {
    let mut fds = [PollFd::new(&socket, PollFlags::OUT)];
    match poll(&mut fds, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
