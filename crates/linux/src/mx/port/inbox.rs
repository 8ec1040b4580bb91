//! Datagrams that one system call has received.

use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;

use rustix::io::Errno;

use super::outbox::{NO_MESSAGE, NO_SLICE, last_errno, sockaddr};

/// The most datagrams that one call receives.
pub(super) const DATAGRAMS: usize = 32;

/// Room for datagrams, side by side, and what a system call has to know of them.
pub(super) struct Inbox {
    data: Box<[u8]>,
    room: usize,
    addresses: [libc::sockaddr_in; DATAGRAMS],
    slices: Box<[libc::iovec; DATAGRAMS]>,
    messages: Box<[libc::mmsghdr; DATAGRAMS]>,
}

// SAFETY: the pointers in `slices` and `messages` are only followed in `receive`, which has just
// written them.
// JUSTIFICATION: they are kept to spare every call their initialisation.
unsafe impl Send for Inbox {}

/// What came.
pub(super) struct Datagram<'a> {
    /// Who sent it.
    pub(super) from: SocketAddrV4,
    /// What is in it; `None` if it was longer than there was room for.
    pub(super) data: Option<&'a [u8]>,
}

impl Inbox {
    /// Room for datagrams of up to `room` bytes.
    pub(super) fn new(room: usize) -> Self {
        Self {
            data: vec![0; room * DATAGRAMS].into(),
            room,
            addresses: [sockaddr(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)); DATAGRAMS],
            slices: Box::new([NO_SLICE; DATAGRAMS]),
            messages: Box::new([NO_MESSAGE; DATAGRAMS]),
        }
    }

    /// Receives up to `count` datagrams that are there; how many.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>, count: usize) -> Result<usize, Errno> {
        let count = count.min(DATAGRAMS);
        for (number, data) in self.data.chunks_exact_mut(self.room).take(count).enumerate() {
            self.slices[number] =
                libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
            let message = &mut self.messages[number].msg_hdr;
            message.msg_iov = &raw mut self.slices[number];
            message.msg_name = (&raw mut self.addresses[number]).cast();
            message.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        }
        let (messages, flags) = (self.messages.as_mut_ptr(), libc::MSG_DONTWAIT);
        let (fd, count) = (socket.as_raw_fd(), count as libc::c_uint);
        // SAFETY: each of the `count` messages points to one slice, that to a part of `data`, and
        // to an address of the length that it says, all of which `self` keeps; none waits, so there
        // is no timeout.
        // JUSTIFICATION: rustix has no such call.
        let came = unsafe { libc::recvmmsg(fd, messages, count, flags as _, null_mut()) };
        usize::try_from(came).map_err(|_| last_errno())
    }

    /// One of those that the last call has received.
    pub(super) fn datagram(&self, number: usize) -> Datagram<'_> {
        let (message, address) = (&self.messages[number], &self.addresses[number]);
        let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
        let from = SocketAddrV4::new(ip, u16::from_be(address.sin_port));
        let whole = message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
        let length = (message.msg_len as usize).min(self.room);
        let data = whole.then(|| &self.data[number * self.room..][..length]);
        Datagram { from, data }
    }
}
