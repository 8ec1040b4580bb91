//! Frames that wait for one system call that sends them all.

use std::io;
use std::mem::size_of;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::SendFlags;

use super::PortCounters;

/// The most frames that one call sends: enough that the call itself costs little.
const FRAMES: usize = 64;

/// A cache line, in bytes.
const LINE: usize = 64;

/// Room for frames, side by side, and what a system call has to know of them.
///
/// It is filled, then emptied in the same order. It is not filled while a part of it has still to
/// be sent.
pub(super) struct Outbox {
    frames: Box<[u8]>,
    stride: usize,
    room: usize,
    /// Bytes of each frame that are not counted: those of its Ethernet header.
    header: usize,
    lengths: [usize; FRAMES],
    addresses: [libc::sockaddr_in; FRAMES],
    addressed: bool,
    /// The first that was not sent.
    first: usize,
    /// The end of those that were written.
    end: usize,
    slices: Box<[libc::iovec; FRAMES]>,
    messages: Box<[libc::mmsghdr; FRAMES]>,
}

// SAFETY: the pointers in `slices` and `messages` are only followed in `send_many`, which has just
// written them.
// JUSTIFICATION: they are kept to spare every call their initialisation.
unsafe impl Send for Outbox {}

impl Outbox {
    /// Room for frames of up to `header` + `mtu` bytes; each has an address of its own if
    /// `addressed`.
    pub(super) fn new(header: usize, mtu: usize, addressed: bool) -> Self {
        let room = header + mtu;
        let stride = room.next_multiple_of(LINE);
        Self {
            frames: vec![0; stride * FRAMES].into(),
            stride,
            room,
            header,
            lengths: [0; FRAMES],
            addresses: [sockaddr(SocketAddrV4::new([0; 4].into(), 0)); FRAMES],
            addressed,
            first: 0,
            end: 0,
            slices: Box::new([NO_SLICE; FRAMES]),
            messages: Box::new([NO_MESSAGE; FRAMES]),
        }
    }

    /// Whether everything was sent.
    pub(super) fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// Where the next frame goes, header included; `None` if there is no room.
    pub(super) fn vacant(&mut self) -> Option<&mut [u8]> {
        (self.end < FRAMES).then(|| &mut self.frames[self.end * self.stride..][..self.room])
    }

    /// Adds what was written to [`vacant`](Self::vacant), that many bytes with the header.
    pub(super) fn push(&mut self, length: usize) {
        self.lengths[self.end] = length.min(self.room);
        self.end += 1;
    }

    /// As [`push`](Self::push), with the address that it goes to.
    pub(super) fn push_to(&mut self, length: usize, to: SocketAddrV4) {
        self.addresses[self.end] = sockaddr(to);
        self.push(length);
    }

    /// Gives up the first frame that was not sent.
    pub(super) fn skip(&mut self) {
        self.first += 1;
        self.settle();
    }

    /// Sends all frames. If the kernel refuses one, it and all that follow remain.
    pub(super) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        counters: &mut PortCounters,
    ) -> Result<(), Errno> {
        while !self.is_empty() {
            counters.calls_out += 1;
            // A single frame, which somebody waits for, gets the quicker call.
            let sent = if self.end - self.first == 1 && !self.addressed {
                let frame = &self.frames[self.first * self.stride..][..self.lengths[self.first]];
                rustix::net::send(socket, frame, SendFlags::DONTWAIT).map(|_| 1)
            } else {
                self.send_many(socket)
            };
            let sent = match sent {
                Ok(sent) => sent.min(self.end - self.first),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            let bytes: usize = self.lengths[self.first..][..sent].iter().sum();
            counters.went(sent, bytes - sent * self.header);
            self.first += sent;
            self.settle();
        }
        Ok(())
    }

    fn settle(&mut self) {
        if self.is_empty() {
            (self.first, self.end) = (0, 0);
        }
    }

    /// One call for all frames: how many were sent.
    fn send_many(&mut self, socket: BorrowedFd<'_>) -> Result<usize, Errno> {
        let all = self.first..self.end;
        for number in all.clone() {
            let frame = &mut self.frames[number * self.stride..][..self.lengths[number]];
            self.slices[number] =
                libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
            let message = &mut self.messages[number].msg_hdr;
            message.msg_iov = &raw mut self.slices[number];
            if self.addressed {
                message.msg_name = (&raw mut self.addresses[number]).cast();
                message.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            }
        }
        let messages = self.messages[all.clone()].as_mut_ptr();
        let (fd, count) = (socket.as_raw_fd(), all.len() as libc::c_uint);
        // SAFETY: each of the `count` messages points to one slice, that to a part of `frames`, and
        // to an address of the length that it says, all of which `self` keeps.
        // JUSTIFICATION: rustix borrows each slice for as long as the array of messages lives, so
        // that the array would have to be made anew, in full, for every call.
        let sent = unsafe { libc::sendmmsg(fd, messages, count, libc::MSG_DONTWAIT) };
        usize::try_from(sent).map_err(|_| last_errno())
    }
}

pub(super) const NO_SLICE: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

pub(super) const NO_MESSAGE: libc::mmsghdr = libc::mmsghdr {
    // SAFETY: null pointers and lengths of 0 are a message without content.
    // JUSTIFICATION: on some targets it has padding that only this fills.
    msg_hdr: libc::msghdr { msg_iovlen: 1, ..unsafe { std::mem::zeroed() } },
    msg_len: 0,
};

pub(super) fn sockaddr(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

/// What the kernel said to the last call of libc.
pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}
