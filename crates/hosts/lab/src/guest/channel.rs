//! Frames over a pair of descriptors that never block.
//!
//! ```text
//! length of what follows (4 bytes) │ program (4 bytes) │ message (postcard)
//! ```
//!
//! Numbers are little-endian. What only passes frames on does not decode the message.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, ioctl_fionbio, read, write};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest frame; a larger one means that the other side speaks something else.
pub(super) const MAX_FRAME: usize = 1 << 20;

/// What the guest says before its first frame. Its console may have said something else before.
pub(super) const GREETING: &[u8] = b"\0earmark guest 1\0";

#[derive(Debug)]
pub(super) struct Channel {
    input: OwnedFd,
    output: OwnedFd,
    inbox: VecDeque<u8>,
    outbox: VecDeque<u8>,
    /// How many bytes may be sent until more are allowed; without limit if absent.
    allowance: Option<usize>,
}

impl Channel {
    /// Takes over two descriptors, which may be one file, and which have no other user.
    pub(super) fn new(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&input, true)?;
        ioctl_fionbio(&output, true)?;
        Ok(Self { input, output, inbox: VecDeque::new(), outbox: VecDeque::new(), allowance: None })
    }

    /// What to wait for when there is nothing to read.
    pub(super) fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// What to wait for when there is something that may be sent.
    pub(super) fn output(&self) -> Option<BorrowedFd<'_>> {
        let may_send = !self.outbox.is_empty() && self.allowance != Some(0);
        may_send.then(|| self.output.as_fd())
    }

    /// Allows as many bytes more to be sent. Without a call of this there is no limit.
    pub(super) fn allow(&mut self, bytes: usize) {
        self.allowance = Some(self.allowance.unwrap_or(0).saturating_add(bytes));
    }

    pub(super) fn backlog(&self) -> usize {
        self.outbox.len()
    }

    /// Reads what is there, and says how much that was; nothing at the end of the connection.
    pub(super) fn fill(&mut self) -> io::Result<Option<usize>> {
        let mut buffer = [0; 16 * 1024];
        match read(&self.input, &mut buffer) {
            Ok(0) => Ok(None),
            Ok(count) => {
                self.inbox.extend(&buffer[..count]);
                Ok(Some(count))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(Some(0)),
            // A console whose other side is gone, and a peer that left with unread messages.
            Err(Errno::IO | Errno::CONNRESET) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.output().is_some() {
            let bytes = self.outbox.as_slices().0;
            let most = bytes.len().min(self.allowance.unwrap_or(usize::MAX));
            match write(&self.output, &bytes[..most]) {
                Ok(count) => {
                    self.outbox.drain(..count);
                    self.allowance = self.allowance.map(|allowance| allowance - count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Adds bytes that are no frame.
    pub(super) fn greet(&mut self) {
        self.outbox.extend(GREETING);
    }

    /// Skips everything up to the greeting; false if it is not there yet.
    pub(super) fn is_greeted(&mut self) -> bool {
        let bytes = self.inbox.make_contiguous();
        let found = bytes.windows(GREETING.len()).position(|window| window == GREETING);
        // The greeting may have come in part, so its length may have to stay.
        let useless =
            found.map_or(bytes.len().saturating_sub(GREETING.len()), |at| at + GREETING.len());
        self.inbox.drain(..useless);
        found.is_some()
    }

    pub(super) fn push(&mut self, program: u32, message: &impl Serialize) {
        let bytes = postcard::to_allocvec(message).expect("memory takes any message");
        self.pass(program, &bytes);
    }

    /// Adds a frame that came from elsewhere.
    pub(super) fn pass(&mut self, program: u32, message: &[u8]) {
        let length = u32::try_from(message.len() + 4).expect("messages are short");
        self.outbox.extend(length.to_le_bytes());
        self.outbox.extend(program.to_le_bytes());
        self.outbox.extend(message);
    }

    /// The next frame that is complete: its program and its message.
    pub(super) fn next(&mut self) -> io::Result<Option<(u32, Vec<u8>)>> {
        let Some(length) = self.number(0) else { return Ok(None) };
        let length = length as usize;
        if !(4..=MAX_FRAME).contains(&length) {
            let what = format!("a frame of {length} bytes is none");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if self.inbox.len() < 4 + length {
            return Ok(None);
        }
        let program = self.number(4).expect("the frame is complete");
        self.inbox.drain(..8);
        Ok(Some((program, self.inbox.drain(..length - 4).collect())))
    }

    fn number(&self, at: usize) -> Option<u32> {
        let mut bytes = [0; 4];
        for (offset, byte) in bytes.iter_mut().enumerate() {
            *byte = *self.inbox.get(at + offset)?;
        }
        Some(u32::from_le_bytes(bytes))
    }
}

pub(super) fn message<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    postcard::from_bytes(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::protocol::{GuestEvent, OutputStream};
    use std::os::unix::net::UnixStream;

    fn pair() -> [Channel; 2] {
        let (a, b) = UnixStream::pair().expect("there are descriptors");
        [a, b].map(|end| {
            let other = end.try_clone().expect("there are descriptors");
            Channel::new(end.into(), other.into()).expect("they take it")
        })
    }

    #[test]
    fn messages_come_through_whole_and_in_order() {
        let [mut a, mut b] = pair();
        let sent: Vec<_> =
            (0..40_u8).map(|n| GuestEvent::Output(OutputStream::Error, vec![n; 5_000])).collect();
        for (number, event) in (0..).zip(&sent) {
            a.push(number, event);
        }
        let mut received = Vec::new();
        while received.len() < sent.len() {
            a.flush().expect("the other end is open");
            assert!(b.fill().expect("the other end is open").is_some());
            while let Some((number, bytes)) = b.next().expect("frames are whole") {
                assert_eq!(number as usize, received.len());
                received.push(message::<GuestEvent>(&bytes).expect("it is an event"));
            }
        }
        assert_eq!(received, sent);
        drop(a);
        // A process that another test starts may have a copy of the other end until its exec.
        let end = loop {
            match b.fill().expect("it ends") {
                Some(0) => std::thread::yield_now(),
                end => break end,
            }
        };
        assert_eq!(end, None);
    }

    #[test]
    fn noise_before_the_greeting_is_skipped() {
        let [mut a, mut b] = pair();
        a.outbox.extend(b"booting\0earmark guest");
        a.flush().expect("the other end is open");
        b.fill().expect("the other end is open");
        assert!(!b.is_greeted());
        a.outbox.extend(b" 1\0");
        a.push(7, &GuestEvent::Ready);
        a.flush().expect("the other end is open");
        b.fill().expect("the other end is open");
        assert!(b.is_greeted());
        assert_eq!(b.next().expect("a frame").map(|(program, _)| program), Some(7));
    }

    #[test]
    fn no_more_is_sent_than_allowed() {
        let [mut a, mut b] = pair();
        a.allow(100);
        a.push(1, &GuestEvent::Output(OutputStream::Output, vec![0; 150]));
        a.flush().expect("the other end is open");
        assert_eq!(b.fill().expect("the other end is open"), Some(100));
        assert!(a.output().is_none() && a.backlog() > 0);
        a.allow(100);
        a.flush().expect("the other end is open");
        b.fill().expect("the other end is open");
        assert!(b.next().expect("the frame is whole").is_some());
    }

    #[test]
    fn nonsense_is_an_error() {
        let [mut a, mut b] = pair();
        a.outbox.extend([0xff; 8]);
        a.flush().expect("the other end is open");
        b.fill().expect("the other end is open");
        assert!(b.next().is_err());
    }
}
