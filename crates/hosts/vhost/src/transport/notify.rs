//! Kicks and calls: the descriptors by which guest and device wake each other.
//!
//! They are the guest's, so nothing here may depend on what the guest does with them. A kick is
//! never read: the epoll that watches it is edge-triggered, and each write is an edge. A call is
//! sent without waiting; if it cannot be, an earlier one is still unread, and that is as good.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;
use rustix::net::{SendFlags, send};

use super::connection::Connection;
use super::reaper::ForeignFd;
use super::signal::{Signals, is_event_fd, is_unix_socket};

/// Something with a descriptor of the guest, which an epoll watches until this is dropped.
#[derive(Debug)]
pub(super) struct Watched<T: AsFd> {
    epoll: Arc<OwnedFd>,
    pub(super) inside: T,
}

impl Watched<ForeignFd> {
    /// Watches a kick descriptor; `epoll` reports each kick once, as `token`.
    pub(super) fn kick(epoll: &Arc<OwnedFd>, fd: ForeignFd, token: u64) -> io::Result<Self> {
        // Another file might keep the epoll waiting for what it says of itself.
        if !is_event_fd(fd.as_fd())? {
            return Err(io::Error::other("it is no eventfd"));
        }
        Self::new(epoll, fd, token, epoll::EventFlags::IN | epoll::EventFlags::ET)
    }
}

impl Watched<OwnedFd> {
    /// Watches a process, by its pidfd; `epoll` reports its end once, as `token`.
    pub(super) fn process(epoll: &Arc<OwnedFd>, pidfd: OwnedFd, token: u64) -> io::Result<Self> {
        Self::new(epoll, pidfd, token, epoll::EventFlags::IN | epoll::EventFlags::ONESHOT)
    }
}

impl Watched<Connection> {
    /// Watches a connection; `epoll` reports it as `token` while it can be read.
    pub(super) fn connection(
        epoll: &Arc<OwnedFd>,
        connection: Connection,
        token: u64,
    ) -> io::Result<Self> {
        Self::new(epoll, connection, token, epoll::EventFlags::IN)
    }
}

impl<T: AsFd> Watched<T> {
    fn new(
        epoll: &Arc<OwnedFd>,
        inside: T,
        token: u64,
        flags: epoll::EventFlags,
    ) -> io::Result<Self> {
        epoll::add(epoll, &inside, epoll::EventData::new_u64(token), flags)?;
        Ok(Self { epoll: Arc::clone(epoll), inside })
    }
}

impl<T: AsFd> Drop for Watched<T> {
    fn drop(&mut self) {
        // Closing would not do: the guest has the same file open, and the epoll watches files.
        let _ = epoll::delete(&*self.epoll, &self.inside);
    }
}

/// How a ring's interrupts reach the guest.
#[derive(Debug)]
pub(super) enum Call {
    /// An eventfd, as QEMU and DPDK have it.
    Event(ForeignFd),
    /// A socket, as Linux in user mode has it: it reads eight bytes for each interrupt.
    Socket(ForeignFd),
}

impl Call {
    /// Anything but an eventfd or a socket of this machine might keep the writer waiting.
    pub(super) fn new(fd: ForeignFd) -> io::Result<Self> {
        if is_event_fd(fd.as_fd())? {
            Ok(Self::Event(fd))
        } else if is_unix_socket(fd.as_fd())? {
            Ok(Self::Socket(fd))
        } else {
            Err(io::Error::other("it is neither an eventfd nor a Unix socket"))
        }
    }

    /// Interrupts. A guest that is gone is noticed at its connection.
    pub(super) fn send(&self, signals: &Signals) {
        match self {
            // It was seen to be an eventfd, and one it stays.
            Self::Event(fd) => drop(signals.send(fd.as_fd())),
            Self::Socket(fd) => {
                let one = 1_u64.to_ne_bytes();
                let _ = send(fd, &one, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::reaper::tests::foreign;
    use rustix::event::{EventfdFlags, eventfd};
    use std::os::unix::net::UnixStream;

    #[test]
    fn calls_never_wait() {
        let signals = Signals::new().unwrap();
        let event = eventfd(0, EventfdFlags::empty()).unwrap();
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        Call::new(foreign(event)).unwrap().send(&signals);
        let (_peer, socket) = UnixStream::pair().unwrap();
        let call = Call::new(foreign(socket)).unwrap();
        (0..100_000).for_each(|_| call.send(&signals));
    }

    #[test]
    fn other_descriptors_are_refused() {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        for fd in [reader, tcp.into()] {
            let refused = Call::new(foreign(fd.try_clone().unwrap())).unwrap_err().to_string();
            assert!(refused.contains("neither an eventfd nor a Unix socket"), "{refused}");
            assert!(Watched::kick(&epoll, foreign(fd), 7).is_err());
        }
    }

    #[test]
    fn each_kick_is_an_edge() {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
        let event = eventfd(0, EventfdFlags::empty()).unwrap();
        let kick = Watched::kick(&epoll, foreign(event.try_clone().unwrap()), 7).unwrap();
        let ready = || {
            let mut events = Vec::with_capacity(4);
            let spare = rustix::buffer::spare_capacity(&mut events);
            epoll::wait(&epoll, spare, Some(&rustix::event::Timespec::default())).unwrap()
        };
        for _ in 0..3 {
            assert_eq!(ready(), 0);
            rustix::io::write(&event, &1_u64.to_ne_bytes()).unwrap();
            assert_eq!(ready(), 1);
        }
        drop(kick);
        rustix::io::write(&event, &1_u64.to_ne_bytes()).unwrap();
        assert_eq!(ready(), 0);
    }
}
