//! The large messages that are being [read](super::reads).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::announced::Head;
use crate::ids::PeerId;
use crate::large::Pull;
use crate::outgoing::Reference;

/// The messages that are read, the first one first.
#[derive(Debug, Default)]
pub(super) struct Reads {
    pub(super) queue: VecDeque<Reading>,
    pub(super) reference: Option<Reference>,
    /// How many bytes of the first message are being read.
    pub(super) asked: usize,
    /// Where they are read to if their place is not in one piece.
    pub(super) room: Vec<u8>,
}

/// A message, of which what lies before its `offset` is in place, or in the head.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) pull: Pull,
    pub(super) reference: Reference,
    pub(super) head: Head,
}

impl Reading {
    /// How many bytes of the message are in the head alone.
    pub(super) const fn lead(&self) -> u64 {
        self.pull.length - self.reference.length
    }
}

impl Reads {
    pub(super) fn pulls(&self) -> impl Iterator<Item = &Pull> {
        self.queue.iter().map(|reading| &reading.pull)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn forget(&mut self, peer: PeerId) {
        self.queue.retain(|reading| reading.pull.peer != peer);
    }
}
