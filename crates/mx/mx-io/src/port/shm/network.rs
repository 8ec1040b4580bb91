//! Sockets of one network, whichever the thread that wants them is in.
//!
//! A name of a unix socket means something in a network namespace. A port belongs to that of the
//! thread that opened it, and may be used by threads that are in others.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use rustix::fs::{Mode, OFlags, fstat, open, stat};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

const HERE: &str = "/proc/thread-self/ns/net";

/// A network namespace; `None` where there is no `/proc` that tells of it, and all threads are
/// taken to be in the same.
#[derive(Debug)]
pub(super) struct Network(Option<OwnedFd>);

impl Network {
    pub(super) fn here() -> Self {
        Self(open(HERE, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok())
    }

    /// A unix socket that keeps packets apart, and never waits.
    pub(super) fn socket(&self) -> io::Result<OwnedFd> {
        match &self.0 {
            Some(network) if !is_here(network) => thread::scope(|scope| {
                let visitor = thread::Builder::new().name("in-network".to_owned());
                let work = || {
                    use std::os::fd::AsFd;
                    let kind = Some(LinkNameSpaceType::Network);
                    move_into_link_name_space(network.as_fd(), kind)?;
                    socket()
                };
                let died = |_| io::Error::other("a thread that opens a socket has died");
                visitor.spawn_scoped(scope, work)?.join().map_err(died)?
            }),
            _ => socket(),
        }
    }
}

fn is_here(network: &OwnedFd) -> bool {
    let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    match (fstat(network), stat(HERE)) {
        (Ok(one), Ok(other)) => identity(one) == identity(other),
        _ => true,
    }
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}
