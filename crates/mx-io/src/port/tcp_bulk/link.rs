//! An open connection as a path for bulk frames: each after its length, in four bytes.

use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ::mx::wire::{BULK_FRAME, RUN, RUN_HEAD, Run};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

use super::pages::Pages;

/// Bytes of the length before each frame.
pub(super) const PREFIX: usize = 4;

/// Room for what one call receives, in bytes: some frames, so that few of them come in two parts.
const ROOM: usize = 256 << 10;

/// Data of more bytes than this are sent from where they lie. To find the pages of fewer costs more
/// than a copy.
const COPIED: usize = 40 << 10;

/// A connection.
pub(super) struct Link {
    stream: TcpStream,
    /// What has come: the part from `start` to `end` has not been looked at. Before it there is
    /// room for a head.
    room: Box<[u8]>,
    start: usize,
    end: usize,
    /// The run whose data come next.
    run: Option<Run>,
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
        let room = vec![0; RUN_HEAD + ROOM].into_boxed_slice();
        Self { stream, room, start: RUN_HEAD, end: RUN_HEAD, run: None, rest: Vec::new() }
    }

    /// Whether it takes no frame now.
    pub(super) const fn is_full(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Sends a frame: its prefix with its first bytes, and the `data` that follow. Another one
    /// follows soon if there is `more`. What the kernel does not take now goes with
    /// [`flush`](Self::flush).
    pub(super) fn send(
        &mut self,
        pages: &mut Pages,
        head: &[u8],
        data: &[u8],
        more: bool,
    ) -> io::Result<()> {
        let are_pages = data.len() >= COPIED;
        let copied = if are_pages { &[] } else { data };
        let sent = push(&self.stream, [head, copied], more || are_pages)?;
        self.rest.extend_from_slice(&head[sent.min(head.len())..]);
        self.rest.extend_from_slice(&copied[sent.saturating_sub(head.len())..]);
        if are_pages {
            let sent = if self.is_full() {
                0
            } else {
                pages.send(&self.stream, data, more, &mut self.rest)?
            };
            self.rest.extend_from_slice(&data[sent..]);
        }
        Ok(())
    }

    /// Sends what has been left.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let sent = push(&self.stream, [&self.rest, &[]], false)?;
        self.rest.drain(..sent);
        Ok(())
    }

    /// Receives what is there, and hands each frame to `take`; how often the kernel was called.
    ///
    /// # Errors
    /// If the peer has closed it, or does not follow the protocol.
    pub(super) fn receive(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
        let mut calls = 0;
        loop {
            calls += 1;
            let wanted = self.room.len() - self.end;
            let came = match recv(&self.stream, &mut self.room[self.end..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((came, _)) => came,
                Err(Errno::AGAIN) => return Ok(calls),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            self.end += came;
            while let Some(frame) = self.next()? {
                take(&self.room[frame]);
            }
            self.rewind();
            if came < wanted {
                return Ok(calls);
            }
        }
    }

    /// Where the next frame is, if all of it has come.
    fn next(&mut self) -> io::Result<Option<Range<usize>>> {
        if self.run.is_some() {
            return Ok(self.next_of_run());
        }
        let waiting = &self.room[self.start..self.end];
        let Some((prefix, frame)) = waiting.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let length = u32::from_be_bytes(*prefix) as usize;
        if !(RUN_HEAD..=RUN).contains(&length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(head) = frame.first_chunk::<RUN_HEAD>() else {
            return Ok(None);
        };
        self.run = Run::new(head, length.saturating_sub(RUN_HEAD));
        if self.run.is_some() {
            self.start += PREFIX + RUN_HEAD;
            return Ok(self.next_of_run());
        }
        if length > BULK_FRAME {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if frame.len() < length {
            return Ok(None);
        }
        let at = self.start + PREFIX;
        self.start = at + length;
        Ok(Some(at..at + length))
    }

    /// Where the next frame of the run is, if all of it has come. Its head is written over what
    /// was before it.
    fn next_of_run(&mut self) -> Option<Range<usize>> {
        let run = self.run.as_mut()?;
        let length = run.next();
        let (before, data) = self.room[..self.end].split_at_mut(self.start);
        if data.len() < length {
            return None;
        }
        run.write_head(before.last_chunk_mut()?);
        if run.next() == 0 {
            self.run = None;
        }
        let at = self.start - RUN_HEAD;
        self.start += length;
        Some(at..self.start)
    }

    /// Makes room for at least one frame behind what has come of the next one.
    fn rewind(&mut self) {
        let is_empty = self.start == self.end;
        if is_empty || self.room.len() - self.start < 2 * (PREFIX + BULK_FRAME) {
            self.room.copy_within(self.start..self.end, RUN_HEAD);
            (self.start, self.end) = (RUN_HEAD, RUN_HEAD + self.end - self.start);
        }
    }
}

/// How many of the bytes, which are in two places, the kernel takes now; others follow soon if
/// there are `more`.
fn push(stream: &TcpStream, bytes: [&[u8]; 2], more: bool) -> io::Result<usize> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let flags = if more { flags | SendFlags::MORE } else { flags };
    let [first, second] = bytes;
    let mut sent = 0;
    while sent < first.len() + second.len() {
        let rest = [
            IoSlice::new(&first[sent.min(first.len())..]),
            IoSlice::new(&second[sent.saturating_sub(first.len())..]),
        ];
        match sendmsg(stream, &rest, &mut SendAncillaryBuffer::default(), flags) {
            Ok(count) => sent += count,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use ::mx::seq::Seq;
    use ::mx::wire::{self, BULK_PAYLOAD, Body, Header, RUN_FRAMES};

    use super::*;

    /// A connection, and the other end of it.
    fn connected() -> (Link, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (open(listener.accept().unwrap().0), other)
    }

    fn open(stream: TcpStream) -> Link {
        stream.set_nonblocking(true).unwrap();
        Link::new(stream)
    }

    fn record(length: u32, bytes: usize) -> Vec<u8> {
        [&length.to_be_bytes()[..], &vec![7; bytes]].concat()
    }

    /// The lengths of frames that come, until there are so many, or the error that ends them.
    fn lengths(link: &mut Link, count: usize) -> Result<Vec<usize>, io::ErrorKind> {
        let mut came = Vec::new();
        while came.len() < count {
            link.receive(|frame| came.push(frame.len())).map_err(|error| error.kind())?;
        }
        Ok(came)
    }

    #[test]
    fn frames_come_whole_however_they_are_cut() {
        let (mut link, mut other) = connected();
        let frames = [RUN_HEAD, 1500, BULK_FRAME, 33, BULK_FRAME].repeat(20);
        let bytes: Vec<u8> = frames.iter().flat_map(|n| record(*n as u32, *n)).collect();
        let sender = std::thread::spawn(move || {
            for piece in bytes.chunks(7919) {
                other.write_all(piece).unwrap();
            }
            other
        });
        assert_eq!(lengths(&mut link, frames.len()), Ok(frames));
        drop(sender.join().unwrap());
        assert_eq!(lengths(&mut link, 1), Err(io::ErrorKind::UnexpectedEof));
    }

    #[test]
    fn lengths_that_no_frame_has_end_the_connection() {
        for length in [0, RUN_HEAD as u32 - 1, BULK_FRAME as u32 + 1, RUN as u32 + 1, u32::MAX] {
            let (mut link, mut other) = connected();
            other.write_all(&record(length, 100)).unwrap();
            assert_eq!(lengths(&mut link, 1), Err(io::ErrorKind::InvalidData), "{length}");
        }
    }

    /// A prefix and the head of a run, and its data.
    fn run(data: usize) -> (Vec<u8>, Vec<u8>) {
        let header = Header {
            marked: false,
            crc: false,
            full: false,
            ask: true,
            to: 1,
            from: 2,
            token: 3,
            seq: Seq(4),
            ack: Seq(5),
            credit: 6,
            window: 7,
        };
        let mut head = [0; PREFIX + RUN_HEAD];
        wire::write(
            &header,
            &Body::Reply { pull: 8, index: u32::MAX, data: &[] },
            &mut head[PREFIX..],
        );
        head[..PREFIX].copy_from_slice(&((RUN_HEAD + data) as u32).to_be_bytes());
        (head.to_vec(), (0..data).map(|at| (at / 7 + at / 4096) as u8).collect())
    }

    #[test]
    fn run_comes_as_frames() {
        let (mut link, other) = connected();
        let mut other = open(other);
        for data in [BULK_PAYLOAD + 1, BULK_PAYLOAD + 20, 3 * BULK_PAYLOAD, RUN - RUN_HEAD] {
            let (head, data) = run(data);
            let (mut came, mut asked) = (Vec::new(), Vec::new());
            other.send(&mut Pages::default(), &head, &data, false).unwrap();
            while came.len() < data.len() {
                let take = |frame: &[u8]| {
                    let (header, body) = wire::parse(frame).unwrap();
                    let Body::Reply { pull: 8, index, data } = body else { panic!("{body:?}") };
                    let number = (came.len() / BULK_PAYLOAD) as u32;
                    assert_eq!((index, header.seq), (u32::MAX.wrapping_add(number), Seq(4)));
                    came.extend_from_slice(data);
                    asked.push(header.ask);
                };
                link.receive(take).unwrap();
                other.flush().unwrap();
            }
            assert!(came == data);
            // The flag is that of the last one.
            assert_eq!(asked.iter().position(|ask| *ask), Some(asked.len() - 1));
        }
    }

    #[test]
    fn what_the_kernel_does_not_take_goes_later() {
        let (mut link, other) = connected();
        let mut other = open(other);
        let (head, data) = run(RUN - RUN_HEAD);
        let frame = record(BULK_FRAME as u32, BULK_FRAME);
        let mut pages = Pages::default();
        for (head, data, frames) in [(&frame, &Vec::new(), 1), (&head, &data, RUN_FRAMES)] {
            let (mut sent, mut came) = (0, 0);
            while !link.is_full() {
                link.send(&mut pages, head, data, true).unwrap();
                sent += frames;
            }
            while came < sent {
                other.receive(|_| came += 1).unwrap();
                link.flush().unwrap();
            }
            assert!(!link.is_full());
        }
    }
}
