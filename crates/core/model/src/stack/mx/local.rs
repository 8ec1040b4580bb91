//! Messages between two processes of one host, through memory that they share.
//!
//! The sender copies a message to where the receiver finds it. Neither the NIC nor the kernel takes
//! part.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::SizedMessage;

/// A message from a process of the same host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalMessage {
    /// The number of the peer that it came from.
    pub peer: usize,
    /// The match information that it came with.
    pub match_info: u64,
    /// The message itself.
    pub message: SizedMessage,
}

/// Messages of one process from others of its host.
#[derive(Debug, Default)]
pub(super) struct LocalInbox {
    /// The process of this host that a peer is, by number of the peer.
    neighbors: Vec<Option<usize>>,
    /// It has receives for every message.
    takes_all: bool,
    /// Messages that were not received yet, in the order in which they came.
    arrived: VecDeque<LocalMessage>,
    /// Receives that wait, by peer and match information.
    posted: Vec<(usize, u64)>,
}

impl LocalInbox {
    pub(super) fn new(takes_all: bool) -> Self {
        Self { takes_all, ..Self::default() }
    }

    /// Names the process that the next peer is, if it is on this host.
    pub(super) fn add_peer(&mut self, process: Option<usize>) {
        self.neighbors.push(process);
    }

    /// The process that a peer is, if it is on this host.
    pub(super) fn process_of(&self, peer: usize) -> Option<usize> {
        self.neighbors.get(peer).copied().flatten()
    }

    /// A process of this host sends a message.
    pub(super) fn arrive(&mut self, from: usize, match_info: u64, message: SizedMessage) {
        let peer = self.neighbors.iter().position(|it| *it == Some(from)).unwrap_or_default();
        self.arrived.push_back(LocalMessage { peer, match_info, message });
    }

    /// A receive waits for a message from a peer.
    pub(super) fn post(&mut self, peer: usize, match_info: u64) {
        self.posted.push((peer, match_info));
    }

    /// The first message that a receive takes.
    pub(super) fn take(&mut self) -> Option<LocalMessage> {
        if self.takes_all {
            return self.arrived.pop_front();
        }
        let wanted = |it: &LocalMessage| (it.peer, it.match_info);
        let first = self.arrived.iter().position(|it| self.posted.contains(&wanted(it)))?;
        let message = self.arrived.remove(first)?;
        let receive = self.posted.iter().position(|it| *it == wanted(&message))?;
        self.posted.remove(receive);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waits_for_a_receive_of_its_peer_and_match_information() {
        let mut inbox = LocalInbox::new(false);
        inbox.add_peer(None);
        inbox.add_peer(Some(4));
        assert_eq!((inbox.process_of(0), inbox.process_of(1)), (None, Some(4)));
        inbox.arrive(4, 7, SizedMessage::of(1));
        inbox.arrive(4, 8, SizedMessage::of(2));
        assert_eq!(inbox.take(), None);
        inbox.post(1, 8);
        assert_eq!(inbox.take().map(|it| it.message.length), Some(2));
        assert_eq!(inbox.take(), None);
        inbox.post(1, 7);
        assert_eq!(inbox.take().map(|it| it.message.length), Some(1));
    }
}
