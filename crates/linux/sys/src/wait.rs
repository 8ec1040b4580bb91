//! Waiting for a descriptor.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until there is something to read; at most for `longest`, or until a signal comes.
pub fn wait_readable(socket: impl AsFd, longest: Duration) -> io::Result<()> {
    let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
    let mut fds = [PollFd::new(&socket, PollFlags::IN)];
    match poll(&mut fds, Some(&longest)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a socket takes datagrams, or bytes of a stream, again; at most for `longest`, or
/// until a signal comes.
pub fn wait_writable(socket: impl AsFd, longest: Option<Duration>) -> io::Result<()> {
    let longest = longest.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
    let mut fds = [PollFd::new(&socket, PollFlags::OUT)];
    match poll(&mut fds, longest.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
