//! An open connection as a path for bulk frames: each after its length, in four bytes.
//!
//! The kernel copies a tenth faster between places that are as far from the beginning of a cache
//! line. It puts what is sent one after the other into pages, so data are there where they are in
//! the stream: padding before them moves them, and padding after each frame keeps the stream at the
//! beginning of a line. Padding is a length with [`PADDING`], and as many bytes.

use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ::mx::wire::{BULK_FRAME, RUN, RUN_HEAD, Run};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

use super::super::{NicId, TakeFrame};
use sys::memory::CACHE_LINE;

/// Bytes of the length before each frame.
pub(super) const PREFIX: usize = 4;

/// The bit of a length that says that padding follows, a cache line of it at most.
pub(super) const PADDING: u32 = 1 << 31;
/// Bytes of the longest padding, with its length.
pub(super) const MAX_PADDING: usize = PREFIX + CACHE_LINE - 1;

/// Room for what one call receives, in bytes: some frames, so that few of them come in two parts.
const ROOM: usize = 256 << 10;

/// Of what comes when a run may begin so much is received at first: its head, and little more.
const BEGINNING: usize = 512;

pub(super) struct Link {
    stream: TcpStream,
    /// What has come: the part from `start` to `end` has not been looked at. Before it there is
    /// room for a head.
    room: Box<[u8]>,
    /// Where it begins when nothing has come: at a cache line, to which the kernel copies faster.
    begin: usize,
    start: usize,
    end: usize,
    /// The run whose data come next; how many bytes of its next frame are in their place, and how
    /// many have to be dropped.
    run: Option<Run>,
    placed: usize,
    dropped: usize,
    /// Data were asked for.
    expects_run: bool,
    /// What the kernel has not taken of the last frame.
    rest: Vec<u8>,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Link {
    /// A path over this connection, whose calls do not block.
    pub(super) fn new(stream: TcpStream) -> Self {
        // Without it, what is not a whole packet waits for an acknowledgement.
        let _ = stream.set_nodelay(true);
        // A peer that is lost gets no byte more: the messages are over.
        let _ = set_socket_linger(&stream, Some(Duration::ZERO));
        let room = vec![0; RUN_HEAD + CACHE_LINE + ROOM].into_boxed_slice();
        let begin = RUN_HEAD + room[RUN_HEAD..].as_ptr().align_offset(CACHE_LINE);
        Self {
            stream,
            room,
            begin,
            start: begin,
            end: begin,
            run: None,
            placed: 0,
            dropped: 0,
            expects_run: false,
            rest: Vec::new(),
        }
    }

    pub(super) const fn is_full(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Sends a frame: its prefix with its first bytes, and the `data` that follow, then padding.
    /// Another one follows soon if there is `more`. What the kernel does not take now goes with
    /// [`flush`](Self::flush).
    ///
    /// The kernel copies the data. It could send the pages of the message instead (`vmsplice(2)`);
    /// between namespaces of one machine, which is all that was measured, the receiver then reads
    /// what was written just before out of the sender's cache, and that takes longer.
    pub(super) fn send(&mut self, head: &[u8], data: &[u8], more: bool) -> io::Result<()> {
        let mut tail = [0; MAX_PADDING];
        let tail = pad(head.len() + data.len(), 0, &mut tail);
        let mut bytes = [head, data, tail];
        push(&self.stream, &mut bytes, more)?;
        bytes.into_iter().for_each(|left| self.rest.extend_from_slice(left));
        Ok(())
    }

    pub(super) fn push(&self) {
        // To set it again makes the kernel send what is not a whole packet (tcp(7)).
        let _ = self.stream.set_nodelay(true);
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut left = [&*self.rest, &[], &[]];
        push(&self.stream, &mut left, false)?;
        let sent = self.rest.len() - left[0].len();
        self.rest.drain(..sent);
        Ok(())
    }

    /// Data were asked for: a run may come, whose data have a place.
    pub(super) fn expect_run(&mut self) {
        self.expects_run = true;
    }

    /// Receives what is there: each frame goes to `take`, and data of runs to their places. How
    /// often the kernel was called.
    ///
    /// # Errors
    /// If the peer has closed it, or does not follow the protocol.
    pub(super) fn receive(&mut self, from: NicId, take: &mut TakeFrame<'_>) -> io::Result<u64> {
        let mut calls = 0;
        loop {
            while self.deliver(from, take)? {}
            calls += 1;
            let (wanted, came) = match self.receive_once(from, take) {
                Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => bytes,
                Err(Errno::AGAIN) => return Ok(calls),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            if came < wanted {
                while self.deliver(from, take)? {}
                return Ok(calls);
            }
        }
    }

    /// Calls the kernel once: how many bytes were wanted, and how many came.
    fn receive_once(
        &mut self,
        from: NicId,
        take: &mut TakeFrame<'_>,
    ) -> rustix::io::Result<(usize, usize)> {
        if let Some(run) = &self.run
            && self.start == self.end
            && self.dropped == 0
            && let Some(place) =
                take.place(from, &run.head(), self.placed, run.left() - self.placed)
        {
            let wanted = place.len();
            let (came, _) = recv(&self.stream, place, RecvFlags::DONTWAIT)?;
            self.note_placed(came, from, take);
            return Ok((wanted, came));
        }
        self.rewind();
        let room = self.room.len() - self.end;
        // What comes with the head of a run has to be copied.
        let may_begin = self.expects_run && self.run.is_none() && self.start == self.end;
        let wanted = if may_begin { BEGINNING.min(room) } else { room };
        let (came, _) =
            recv(&self.stream, &mut self.room[self.end..self.end + wanted], RecvFlags::DONTWAIT)?;
        self.end += came;
        Ok((wanted, came))
    }

    /// Deals with the next frame, or some bytes of it, of what has come; whether there was enough.
    fn deliver(&mut self, from: NicId, take: &mut TakeFrame<'_>) -> io::Result<bool> {
        if self.run.is_some() {
            return Ok(self.deliver_run(from, take));
        }
        let waiting = &self.room[self.start..self.end];
        let Some((prefix, frame)) = waiting.split_first_chunk::<PREFIX>() else { return Ok(false) };
        let length = u32::from_be_bytes(*prefix);
        let padding = (length ^ PADDING) as usize;
        if padding < CACHE_LINE {
            let is_there = frame.len() >= padding;
            self.start += if is_there { PREFIX + padding } else { 0 };
            return Ok(is_there);
        }
        let length = length as usize;
        if !(RUN_HEAD..=RUN).contains(&length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(head) = frame.first_chunk::<RUN_HEAD>() else { return Ok(false) };
        self.run = Run::new(head, length - RUN_HEAD);
        if self.run.is_some() {
            self.start += PREFIX + RUN_HEAD;
            return Ok(true);
        }
        if length > BULK_FRAME {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(frame) = frame.get(..length) else { return Ok(false) };
        take.take(from, frame);
        self.expects_run = false;
        self.start += PREFIX + length;
        Ok(true)
    }

    /// As `deliver`, of a run. Its data go to their place, or, if they have none, become frames,
    /// with a head that is written over what was before it.
    fn deliver_run(&mut self, from: NicId, take: &mut TakeFrame<'_>) -> bool {
        let Some(run) = &mut self.run else { return false };
        let waiting = self.end - self.start;
        let (head, length) = (run.head(), run.next());
        if self.dropped > 0 {
            let count = self.dropped.min(waiting);
            self.dropped -= count;
            self.start += count;
            if self.dropped == 0 {
                self.advance_run(length);
            }
            return count > 0;
        }
        if waiting > 0
            && let Some(place) = take.place(from, &head, self.placed, run.left() - self.placed)
        {
            let count = waiting.min(place.len());
            place[..count].copy_from_slice(&self.room[self.start..self.start + count]);
            self.start += count;
            self.note_placed(count, from, take);
            return true;
        }
        if self.placed > 0 && waiting > 0 {
            // It had a place, and is not wanted any more.
            self.dropped = length - self.placed;
            self.placed = 0;
            return true;
        }
        if waiting < length {
            return false;
        }
        let at = self.start - RUN_HEAD;
        self.room[at..self.start].copy_from_slice(&head);
        self.start += length;
        take.take(from, &self.room[at..self.start]);
        self.advance_run(length);
        true
    }

    fn note_placed(&mut self, count: usize, from: NicId, take: &mut TakeFrame<'_>) {
        self.placed += count;
        if let Some(run) = &self.run
            && let whole @ 1.. = run.whole(self.placed)
        {
            take.placed(from, &run.head(), whole);
            self.placed -= whole;
            self.advance_run(whole);
        }
    }

    /// So many bytes of whole frames have been dealt with.
    fn advance_run(&mut self, bytes: usize) {
        if let Some(run) = &mut self.run {
            run.advance(bytes);
            self.run = self.run.take().filter(|run| run.left() > 0);
        }
    }

    /// Makes room for at least one frame behind what has come of the next one.
    fn rewind(&mut self) {
        let is_empty = self.start == self.end;
        if is_empty || self.room.len() - self.start < 2 * (PREFIX + BULK_FRAME) {
            self.room.copy_within(self.start..self.end, self.begin);
            (self.start, self.end) = (self.begin, self.begin + self.end - self.start);
        }
    }
}

/// Padding for so many bytes after which the stream is where `address` is in its cache line, in
/// `room`.
pub(super) fn pad(bytes: usize, address: usize, room: &mut [u8; MAX_PADDING]) -> &[u8] {
    let length = match address.wrapping_sub(bytes) % CACHE_LINE {
        // Its own length has to be in it.
        few @ 1..PREFIX => few + CACHE_LINE,
        length => length,
    };
    if let Some(padding) = length.checked_sub(PREFIX) {
        *room = [0; MAX_PADDING];
        room[..PREFIX].copy_from_slice(&(PADDING | padding as u32).to_be_bytes());
    }
    &room[..length]
}

/// Takes from the bytes, which are in three places, what the kernel takes now; others follow soon
/// if there are `more`.
fn push(stream: &TcpStream, bytes: &mut [&[u8]; 3], more: bool) -> io::Result<()> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let flags = if more { flags | SendFlags::MORE } else { flags };
    while bytes.iter().any(|left| !left.is_empty()) {
        let slices = bytes.map(IoSlice::new);
        match sendmsg(stream, &slices, &mut SendAncillaryBuffer::default(), flags) {
            Ok(mut sent) => {
                for left in &mut *bytes {
                    let count = sent.min(left.len());
                    *left = &left[count..];
                    sent -= count;
                }
            }
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
