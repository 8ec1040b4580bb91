//! Frames that wait for one system call that sends them all.

use std::mem::size_of;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::SendFlags;

use super::PortCounters;
use super::message::{
    Control, MAX_DATAGRAM, NO_MESSAGE, NO_SLICE, is_same, last_errno, refuses_segments, sockaddr,
};

/// The most frames that one call sends: enough that the call itself costs little.
const FRAMES: usize = 64;

const LINE: usize = 64;

/// Room for frames, side by side, and what a system call has to know of them.
///
/// It is filled, then emptied in the same order. It is not filled while a part of it has still to
/// be sent.
///
/// Datagrams in a row to one address, of one length but for the last, are handed over as one
/// message (`UDP_SEGMENT`), which the kernel takes apart late: they go through it together.
pub(super) struct Outbox {
    frames: Box<[u8]>,
    stride: usize,
    room: usize,
    /// Bytes of each frame that are not counted: those of its Ethernet header.
    header: usize,
    lengths: [usize; FRAMES],
    addresses: [libc::sockaddr_in; FRAMES],
    addressed: bool,
    /// Whether the kernel segments, as far as is known.
    segments: bool,
    /// The first that was not sent.
    first: usize,
    end: usize,
    slices: Box<[libc::iovec; FRAMES]>,
    messages: Box<[libc::mmsghdr; FRAMES]>,
    controls: Box<[Control; FRAMES]>,
}

// SAFETY: the pointers in `slices` and `messages` are only followed in `send_many`, which has just
// written them.
// JUSTIFICATION: they are kept to spare every call their initialisation.
unsafe impl Send for Outbox {}

impl Outbox {
    /// Room for frames of up to `header` + `mtu` bytes; each has an address of its own if
    /// `addressed`, and is a datagram.
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
            segments: addressed,
            first: 0,
            end: 0,
            slices: Box::new([NO_SLICE; FRAMES]),
            messages: Box::new([NO_MESSAGE; FRAMES]),
            controls: Box::new([Control::NONE; FRAMES]),
        }
    }

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

    pub(super) fn skip(&mut self) {
        self.first += 1;
        self.rewind();
    }

    /// Sends all frames. If the kernel refuses one, it and all that follow remain.
    pub(super) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        counters: &mut PortCounters,
    ) -> Result<(), Errno> {
        while !self.is_empty() {
            counters.calls_out += 1;
            // A single frame, which a host waits for, gets the quicker call.
            let sent = if self.end - self.first == 1 && !self.addressed {
                let frame = &self.frames[self.first * self.stride..][..self.lengths[self.first]];
                rustix::net::send(socket, frame, SendFlags::DONTWAIT).map(|_| 1)
            } else {
                self.send_many(socket)
            };
            let sent = match sent {
                Ok(sent) => sent.min(self.end - self.first),
                Err(Errno::INTR) => continue,
                Err(errno) if self.segments && refuses_segments(errno) => {
                    // Whether the frame is to blame shows when it goes alone.
                    self.segments = false;
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            let bytes: usize = self.lengths[self.first..][..sent].iter().sum();
            counters.went(sent, bytes - sent * self.header);
            self.first += sent;
            self.rewind();
        }
        Ok(())
    }

    fn rewind(&mut self) {
        if self.is_empty() {
            (self.first, self.end) = (0, 0);
        }
    }

    /// One call for all frames: how many were sent.
    fn send_many(&mut self, socket: BorrowedFd<'_>) -> Result<usize, Errno> {
        let mut ends = [0; FRAMES];
        let (mut count, mut next) = (0, self.first);
        while next < self.end {
            let end = self.run(next);
            self.describe(count, next, end);
            ends[count] = end;
            (count, next) = (count + 1, end);
        }
        let (fd, messages) = (socket.as_raw_fd(), self.messages.as_mut_ptr());
        // musl calls the kernel for each message, since its types differ from the kernel's.
        let flags = libc::MSG_DONTWAIT as _;
        // SAFETY: each of the `count` messages points to slices, those to parts of `frames`, and to
        // an address and control data of the lengths that it says, all of which `self` keeps.
        // JUSTIFICATION: rustix borrows each slice for as long as the array of messages lives, so
        // that the array would have to be made anew, in full, for every call.
        let sent = unsafe { libc::sendmmsg(fd, messages, count as libc::c_uint, flags) };
        let sent = usize::try_from(sent).map_err(|_| last_errno())?;
        Ok(sent.checked_sub(1).map_or(0, |last| ends[last.min(count - 1)] - self.first))
    }

    /// The end of the frames that go in one message with the one at `first`.
    fn run(&self, first: usize) -> usize {
        let (length, mut bytes) = (self.lengths[first], self.lengths[first]);
        let mut end = first + 1;
        while self.segments && end < self.end {
            bytes += self.lengths[end];
            let fits = bytes <= MAX_DATAGRAM && self.lengths[end] <= length;
            if !fits || !is_same(&self.addresses[first], &self.addresses[end]) {
                break;
            }
            end += 1;
            if self.lengths[end - 1] < length {
                break;
            }
        }
        end
    }

    fn describe(&mut self, number: usize, first: usize, end: usize) {
        for frame in first..end {
            let data = &mut self.frames[frame * self.stride..][..self.lengths[frame]];
            self.slices[frame] =
                libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
        }
        let message = &mut self.messages[number].msg_hdr;
        *message = NO_MESSAGE.msg_hdr;
        message.msg_iov = &raw mut self.slices[first];
        message.msg_iovlen = (end - first) as _;
        if self.addressed {
            message.msg_name = (&raw mut self.addresses[first]).cast();
            message.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        }
        if end - first > 1 {
            self.controls[number] = Control::segments_of(self.lengths[first] as u16);
            message.msg_control = (&raw mut self.controls[number]).cast();
            message.msg_controllen = size_of::<Control>() as _;
        }
    }
}
