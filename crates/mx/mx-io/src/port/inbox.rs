//! Datagrams that one system call has received.

use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::null_mut;

use rustix::io::Errno;

use super::message::{Control, MAX_DATAGRAM, NO_MESSAGE, NO_SLICE, last_errno, sockaddr};
use super::socket;

/// The most messages that one call receives.
pub(super) const MESSAGES: usize = 32;

/// Bytes from one message to the next: the largest, and so much more that the beginnings of all of
/// them are not in the same place of a cache.
const STRIDE: usize = (64 << 10) + 1600;

/// Room for messages, side by side, and what a system call has to know of them.
///
/// A message is a datagram, or several from one sender that the kernel has put together
/// (`UDP_GRO`), as it or the NIC found them in a row.
pub(super) struct Inbox {
    data: Box<[u8]>,
    addresses: Box<[libc::sockaddr_in; MESSAGES]>,
    controls: Box<[Control; MESSAGES]>,
    /// Points into `data`, where nothing moves.
    slices: Box<[libc::iovec; MESSAGES]>,
    messages: Box<[libc::mmsghdr; MESSAGES]>,
    used: usize,
}

// SAFETY: what the pointers in `slices` and `messages` point to belongs to `self`, and does not
// move with it.
// JUSTIFICATION: they are kept to spare every call their initialisation.
unsafe impl Send for Inbox {}

#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedMessage<'a> {
    pub(super) from: SocketAddrV4,
    data: &'a [u8],
    /// How long each datagram is, but for the last.
    each: usize,
}

impl<'a> ReceivedMessage<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.data.is_empty()
    }

    /// The datagrams, in their order, if they have a content.
    pub(super) fn datagrams(self) -> impl Iterator<Item = &'a [u8]> {
        self.data.chunks(self.each)
    }
}

impl Inbox {
    /// Room for whatever a socket for datagrams gets, which may put several together from now on.
    pub(super) fn new(socket: impl AsFd) -> Self {
        // Without it, each comes alone.
        let _ = socket::merge_datagrams(socket.as_fd());
        let mut inbox = Self {
            data: vec![0; STRIDE * MESSAGES].into(),
            addresses: Box::new([sockaddr(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)); MESSAGES]),
            controls: Box::new([Control::NONE; MESSAGES]),
            slices: Box::new([NO_SLICE; MESSAGES]),
            messages: Box::new([NO_MESSAGE; MESSAGES]),
            used: 0,
        };
        for number in 0..MESSAGES {
            let data = &mut inbox.data[number * STRIDE..][..MAX_DATAGRAM];
            inbox.slices[number] =
                libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
            let message = &mut inbox.messages[number].msg_hdr;
            message.msg_iov = &raw mut inbox.slices[number];
            message.msg_name = (&raw mut inbox.addresses[number]).cast();
            message.msg_control = (&raw mut inbox.controls[number]).cast();
            inbox.renew(number);
        }
        inbox
    }

    fn renew(&mut self, number: usize) {
        let message = &mut self.messages[number].msg_hdr;
        message.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        message.msg_controllen = size_of::<Control>() as _;
    }

    /// Receives up to `count` messages that are there; how many.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>, count: usize) -> Result<usize, Errno> {
        (0..self.used).for_each(|number| self.renew(number));
        self.used = 0;
        let (messages, flags) = (self.messages.as_mut_ptr(), libc::MSG_DONTWAIT);
        let (fd, count) = (socket.as_raw_fd(), count.min(MESSAGES) as libc::c_uint);
        // SAFETY: each of the `count` messages points to one slice, that to a part of `data`, and
        // to an address and control data of the lengths that it says, all of which `self` keeps in
        // boxes; none waits, so there is no timeout.
        // JUSTIFICATION: rustix has no such call.
        let came = unsafe { libc::recvmmsg(fd, messages, count, flags as _, null_mut()) };
        self.used = usize::try_from(came).map_err(|_| last_errno())?.min(MESSAGES);
        Ok(self.used)
    }

    pub(super) fn message(&self, number: usize) -> ReceivedMessage<'_> {
        let (message, address) = (&self.messages[number], &self.addresses[number]);
        let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
        let from = SocketAddrV4::new(ip, u16::from_be(address.sin_port));
        let length = (message.msg_len as usize).min(MAX_DATAGRAM);
        let merged = self.controls[number].merged_from(message.msg_hdr.msg_controllen as _);
        let data = &self.data[number * STRIDE..][..length];
        ReceivedMessage { from, data, each: merged.unwrap_or(length).max(1) }
    }
}
