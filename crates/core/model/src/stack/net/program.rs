//! Programs and their sockets: what these have to read, and what a program is sending.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use base::time::Instant;
use workload::{ConnectionId, Transport};

use super::ip::End;
use crate::frame::Frame;
use crate::stack::driver::{Reported, WorkloadDriver};

/// What `net.core.rmem_default` allows a socket, in bytes, and what a datagram takes of it beyond
/// its payload (`SKB_TRUESIZE` of a short one).
const RECEIVE_BUFFER: usize = 212_992;
const DATAGRAM_OVERHEAD: usize = 768;

/// Bytes that one call reads at most, as an agent does.
pub(super) const READ: usize = 128 << 10;

/// What a connection of a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Conversation {
    /// The end of a TCP connection, by its number on the host.
    Stream(usize),
    /// Datagrams from a port of this host to one of another.
    Datagrams(u16, End),
    /// Echo requests with an identifier to a host.
    Echoes(u16, usize),
    /// Frames of its own.
    Frames,
}

/// A program: what drives it, and what it is sending.
pub(super) struct SocketProgram {
    pub(super) driver: WorkloadDriver,
    /// The number of its sockets, which it may share with others.
    pub(super) sockets: usize,
    /// Frames that a call sends before it returns.
    pub(super) outgoing: VecDeque<Frame>,
    /// TCP connections that may have segments which it sends itself.
    pub(super) sending: VecDeque<usize>,
    pub(super) sequence: u16,
}

/// The sockets of a program, or of several that wait for what comes to one port: as with threads
/// that share an `epoll`, what comes is for the one that asks first.
pub(super) struct Sockets {
    pub(super) transport: Transport,
    /// By the number of the connection.
    pub(super) conversations: Vec<Conversation>,
    numbers: BTreeMap<Conversation, ConnectionId>,
    /// Streams that have something to read, or room for a backlog, in the order in which they had.
    pub(super) ready: VecDeque<ConnectionId>,
    /// Datagrams that came, kept as frames are, and what they take of the buffer.
    inbox: VecDeque<(ConnectionId, Frame)>,
    buffered: usize,
    /// Datagrams of these that calls are reading.
    being_read: usize,
    /// Datagrams that found no room.
    pub(super) dropped: u64,
    /// By the number of the connection: bytes that its socket has not taken.
    pub(super) backlogs: Vec<Vec<u8>>,
}

impl Sockets {
    pub(super) fn new(transport: Transport) -> Self {
        Self {
            transport,
            conversations: Vec::new(),
            numbers: BTreeMap::new(),
            ready: VecDeque::new(),
            inbox: VecDeque::new(),
            buffered: 0,
            being_read: 0,
            dropped: 0,
            backlogs: Vec::new(),
        }
    }

    /// Adds a connection; its number.
    pub(super) fn add(&mut self, conversation: Conversation) -> ConnectionId {
        let number = self.conversations.len();
        self.conversations.push(conversation);
        self.numbers.insert(conversation, number);
        self.backlogs.push(Vec::new());
        number
    }

    /// The number of the connection to a peer that may be new.
    pub(super) fn peer(&mut self, conversation: Conversation) -> ConnectionId {
        let known = self.numbers.get(&conversation).copied();
        known.unwrap_or_else(|| self.add(conversation))
    }

    /// A datagram has come.
    pub(super) fn deliver(&mut self, connection: ConnectionId, payload: &[u8]) {
        let takes = payload.len() + DATAGRAM_OVERHEAD;
        if self.buffered + takes > RECEIVE_BUFFER {
            self.dropped += 1;
            return;
        }
        self.buffered += takes;
        self.inbox.push_back((connection, Frame::new(payload)));
    }

    /// Begins to read a datagram; bytes of it.
    pub(super) fn begin_datagram(&mut self) -> Option<usize> {
        let length = self.inbox.get(self.being_read).map(|(_, payload)| payload.length())?;
        self.being_read += 1;
        Some(length)
    }

    /// Takes a datagram that a call has read.
    pub(super) fn take_datagram(&mut self) -> Option<(ConnectionId, Frame)> {
        let taken = self.inbox.pop_front()?;
        self.being_read -= 1;
        self.buffered -= taken.1.length() + DATAGRAM_OVERHEAD;
        Some(taken)
    }

    /// Whether nothing waits to be read or written.
    pub(super) fn are_quiet(&self) -> bool {
        self.inbox.len() == self.being_read && self.ready.is_empty()
    }
}

impl SocketProgram {
    pub(super) fn new(driver: WorkloadDriver, sockets: usize) -> Self {
        let (outgoing, sending) = (VecDeque::new(), VecDeque::new());
        Self { driver, sockets, outgoing, sending, sequence: 0 }
    }

    /// It has been woken at the moment that it waited for, and finds nothing else to do.
    pub(super) fn woke(&mut self, sockets: &Sockets) {
        if self.driver.waits() && sockets.are_quiet() {
            self.driver.report(Reported::Woke);
        }
    }

    /// It may have segments to send on a connection.
    pub(super) fn may_send_on(&mut self, stream: usize) {
        if !self.sending.contains(&stream) {
            self.sending.push_back(stream);
        }
    }

    /// When its workload goes on if nothing comes.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        self.driver.until().filter(|until| *until > now)
    }
}
