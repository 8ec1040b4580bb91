//! Messages as MX reads and writes them: a header, and the user's bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mx::buffers::{Sink, Source};
use mx::ids::PeerId;
use mx_io::memory::{Copies, Payload};

use crate::bits::HEADER;
use crate::memory::{self, MessageParts, Segments};

/// Messages up to here are kept within their request.
const SHORT: usize = 96;

/// How many messages may be on their way before senders have to wait.
const MAX_MESSAGES: usize = 1 << 16;

/// What the sends of an endpoint keep that have not arrived.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    copies: Arc<Copies>,
    messages: AtomicUsize,
}

impl Backlog {
    pub(crate) fn note(&self, messages: usize) {
        self.messages.store(messages, Ordering::Relaxed);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.copies.are_many() || self.messages.load(Ordering::Relaxed) >= MAX_MESSAGES
    }
}

type Body = Payload<MessageParts, SHORT>;

#[derive(Debug)]
pub(crate) struct Outgoing {
    header: [u8; HEADER],
    body: Body,
    /// Where a copy is kept of what is lent, if it has to be.
    copies: Option<Arc<Copies>>,
}

impl Outgoing {
    pub(crate) fn copied(header: [u8; HEADER], from: &Segments, backlog: &Backlog) -> Self {
        Self { header, body: Body::copied(from, &backlog.copies), copies: None }
    }

    /// A message that is read from the user's memory until its send has ended.
    pub(crate) fn lent(header: [u8; HEADER], from: &Segments, backlog: &Backlog) -> Self {
        Self { header, body: Body::Lent(*from), copies: Some(Arc::clone(&backlog.copies)) }
    }

    pub(crate) fn with_request(request: &[u8], from: &Segments, backlog: &Backlog) -> Self {
        let body = Body::headed(request, from, &backlog.copies);
        Self { header: [0; HEADER], body, copies: None }
    }
}

impl Source for Outgoing {
    fn length(&self) -> u64 {
        HEADER as u64 + self.body.length()
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        let offset = offset as usize;
        let of_header = HEADER.saturating_sub(offset).min(into.len());
        let (head, rest) = into.split_at_mut(of_header);
        if of_header > 0 {
            head.copy_from_slice(&self.header[offset..offset + of_header]);
        }
        if rest.is_empty() {
            return;
        }
        self.body.read((offset + of_header - HEADER) as u64, rest);
    }

    fn piece(&self, offset: u64, most: usize) -> &[u8] {
        let offset = offset as usize;
        match self.header.get(offset..) {
            Some(rest) if !rest.is_empty() => &rest[..most.min(rest.len())],
            _ => self.body.piece((offset - HEADER) as u64, most),
        }
    }

    fn is_lent(&self) -> bool {
        matches!(self.body, Body::Lent(_))
    }

    fn keep(&mut self) {
        if let Some(copies) = self.copies.take() {
            self.body.keep(&copies);
        }
    }
}

#[derive(Debug)]
pub(crate) enum Remote {
    Request(Box<[u8]>),
    Bytes {
        data: Option<u64>,
    },
    Answer {
        writes: bool,
        completion: bool,
        /// The program has given a context, so that a failure can be reported.
        is_known: bool,
    },
}

/// What comes into a place for several messages, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MultiReceive {
    /// The one they come from, if it is to be one.
    pub(crate) source: Option<PeerId>,
}

/// The place for a message, and what its receiver wants to know at the end.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    pub(crate) header: [u8; HEADER],
    pub(crate) memory: Segments,
    pub(crate) completion: bool,
    pub(crate) many: Option<MultiReceive>,
    pub(crate) remote: Option<Box<Remote>>,
}

impl ReceiveBuffer {
    pub(crate) const fn new(memory: Segments, completion: bool) -> Self {
        Self { header: [0; HEADER], memory, completion, many: None, remote: None }
    }

    pub(crate) fn for_remote(memory: Segments, remote: Remote) -> Self {
        Self { remote: Some(Box::new(remote)), ..Self::new(memory, false) }
    }

    fn request(&mut self) -> Option<&mut [u8]> {
        match self.remote.as_deref_mut() {
            Some(Remote::Request(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// A place without room, for a message that is discarded.
    pub(crate) fn nowhere() -> Self {
        Self::new(memory::nothing(), false)
    }
}

impl Sink for ReceiveBuffer {
    fn capacity(&self) -> u64 {
        let length = match self.remote.as_deref() {
            Some(Remote::Request(bytes)) => bytes.len(),
            _ => self.memory.length(),
        };
        (HEADER + length) as u64
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        let offset = offset as usize;
        let of_header = HEADER.saturating_sub(offset).min(from.len());
        let (head, rest) = from.split_at(of_header);
        if of_header > 0 {
            self.header[offset..offset + of_header].copy_from_slice(head);
        }
        if rest.is_empty() {
            return;
        }
        let from = offset + of_header - HEADER;
        match self.request() {
            Some(bytes) => bytes[from..from + rest.len()].copy_from_slice(rest),
            None => self.memory.write(from, rest),
        }
    }

    fn piece(&mut self, offset: u64, most: usize) -> &mut [u8] {
        let offset = offset as usize;
        if self.remote.is_some() {
            return &mut [];
        }
        if offset >= HEADER {
            return self.memory.place(offset - HEADER, most);
        }
        let most = most.min(HEADER - offset);
        &mut self.header[offset..offset + most]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits;
    use crate::memory::borrow_iov;

    #[test]
    fn messages_arrive_whole_however_they_are_cut() {
        for length in [0, 1, SHORT, SHORT + 1, 300] {
            let mut bytes: Vec<u8> = (0..length).map(|index| index as u8).collect();
            let memory = borrow_iov!(one, bytes.as_mut_ptr(), length);
            let (header, backlog) = (bits::header(Some(7)), Backlog::default());
            let copied = Outgoing::copied(header, &memory, &backlog);
            for message in [copied, Outgoing::lent(header, &memory, &backlog)] {
                let total = message.length() as usize;
                for cut in [1, 4, 9, 10, 64, total] {
                    let mut into = vec![0; length];
                    let mut place =
                        ReceiveBuffer::new(borrow_iov!(one, into.as_mut_ptr(), length), true);
                    assert_eq!(place.capacity(), total as u64);
                    for offset in (0..total).step_by(cut) {
                        let mut frame = vec![0; cut.min(total - offset)];
                        message.read(offset as u64, &mut frame);
                        place.write(offset as u64, &frame);
                    }
                    assert_eq!((bits::data(&place.header), &into), (Some(7), &bytes));
                }
            }
        }
    }

    #[test]
    fn backlog_is_full_while_messages_are_kept() {
        let backlog = Backlog::default();
        let mut bytes = vec![0_u8; 1 << 20];
        let memory = borrow_iov!(one, bytes.as_mut_ptr(), bytes.len());
        let kept: Vec<_> =
            (0..64).map(|_| Outgoing::copied([0; HEADER], &memory, &backlog)).collect();
        assert!(backlog.is_full());
        drop(kept);
        assert!(!backlog.is_full());
        backlog.note(MAX_MESSAGES);
        assert!(backlog.is_full());
    }
}
