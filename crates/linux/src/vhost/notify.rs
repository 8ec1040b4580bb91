//! Kicks and calls: the descriptors by which guest and device wake each other.
//!
//! They are the guest's, so nothing here may depend on what the guest does with them. A kick is
//! never read: the epoll that watches it is edge-triggered, and each write is an edge. A call is
//! written without waiting; if it cannot be written, an earlier one is still unread, and that is
//! as good.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::net::{SendFlags, send};

use super::connection::Connection;

/// Something with a descriptor of the guest, which an epoll watches until this is dropped.
#[derive(Debug)]
pub(super) struct Watched<T: AsFd> {
    epoll: Arc<OwnedFd>,
    pub(super) inside: T,
}

impl Watched<OwnedFd> {
    /// Watches a kick descriptor; `epoll` reports each kick once, as `token`.
    pub(super) fn kick(epoll: &Arc<OwnedFd>, fd: OwnedFd, token: u64) -> io::Result<Self> {
        Self::new(epoll, fd, token, epoll::EventFlags::IN | epoll::EventFlags::ET)
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
    Event(OwnedFd),
    /// A socket, as Linux in user mode has it: it reads eight bytes for each interrupt.
    Socket(OwnedFd),
}

impl Call {
    /// Anything but a socket or an eventfd might keep the writer waiting.
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        if FileType::from_raw_mode(fstat(&fd)?.st_mode) == FileType::Socket {
            return Ok(Self::Socket(fd));
        }
        let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let target = std::fs::read_link(link)?;
        if target.as_os_str() != "anon_inode:[eventfd]" {
            return Err(io::Error::other(format!("{} is no eventfd or socket", target.display())));
        }
        fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
        Ok(Self::Event(fd))
    }

    /// Interrupts. A guest that is gone is noticed at its connection.
    pub(super) fn signal(&self) {
        let one = 1_u64.to_ne_bytes();
        let _ = match self {
            Self::Event(fd) => rustix::io::write(fd.as_fd(), &one),
            Self::Socket(fd) => send(fd, &one, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use std::os::unix::net::UnixStream;

    #[test]
    fn calls_never_wait() {
        let event = eventfd(0, EventfdFlags::empty()).unwrap();
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        Call::new(event).unwrap().signal();
        let (_peer, socket) = UnixStream::pair().unwrap();
        let call = Call::new(socket.into()).unwrap();
        (0..100_000).for_each(|_| call.signal());
    }

    #[test]
    fn other_descriptors_are_refused() {
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let refused = Call::new(reader).unwrap_err().to_string();
        assert!(refused.contains("pipe"), "{refused}");
    }

    #[test]
    fn each_kick_is_an_edge() {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
        let event = eventfd(0, EventfdFlags::empty()).unwrap();
        let kick = Watched::kick(&epoll, event.try_clone().unwrap(), 7).unwrap();
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
