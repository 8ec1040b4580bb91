//! Large messages that are read where they lie.
//!
//! A port may be able to read the memory of a peer: [`BulkState::reads_memory`]. Then an
//! announcement refers to the message ([`Endpoint::data`]), and its receiver asks for nothing: when
//! there is a place for the message, the owner of the engine reads it, piece by piece, and does
//! what else there is to do in between.
//!
//! ```text
//!  sender                          receiver
//!    │──── rendezvous (reference) ────▶│ matched: it reads the message
//!    │◀─── notify ─────────────────────│ all is there, or as much as fitted
//! ```
//!
//! What cannot be read is [asked for](crate::large), as any other large message.
//!
//! [`BulkState::reads_memory`]: crate::outgoing::BulkState::reads_memory

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use base::time::Instant;

use super::Endpoint;
use crate::address::{Address, NicId};
use crate::buffers::{Sink, Source};
use crate::ids::PeerId;
use crate::large::Pull;
use crate::outgoing::Reference;
use crate::wire::HEAD;

/// The most bytes that are read at once: so long, some 0.1 ms, the owner does nothing else.
const PIECE: u64 = 1 << 20;
/// The same if they have to be copied again.
const COPIED: usize = 32 << 10;

/// A large message, which its sender calls `region`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    pub(super) match_info: u64,
    pub(super) total: u64,
    pub(super) region: u32,
    pub(super) head: Head,
    /// Where it can be read, without its first bytes, which are in `head`.
    pub(super) reference: Option<Reference>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    bytes: [u8; HEAD],
    length: u8,
}

impl Head {
    pub(super) fn new(head: &[u8]) -> Self {
        let length = head.len().min(HEAD);
        let mut bytes = [0; HEAD];
        bytes[..length].copy_from_slice(&head[..length]);
        Self { bytes, length: length as u8 }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

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

/// A part of a message that is to be read now.
#[derive(Debug)]
pub struct Read<'a> {
    /// In whose memory.
    pub from: Address,
    /// Where it is.
    pub reference: Reference,
    /// Where it goes, which is as long.
    pub place: &'a mut [u8],
}

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// As [`handle_frame`](Self::handle_frame), of an announcement whose message the port can read.
    pub fn handle_reference(
        &mut self,
        now: Instant,
        from: NicId,
        bytes: &[u8],
        reference: Reference,
    ) {
        self.reads.reference = Some(reference);
        self.handle_frame(now, from, bytes);
        // It may have been another frame, or have come too early; then the message is asked for.
        self.reads.reference = None;
    }

    /// A message that was announced has a place: it is read, or else asked for.
    pub(super) fn begin_read(
        &mut self,
        now: Instant,
        pull: Pull,
        reference: Reference,
        head: Head,
    ) {
        let lead = pull.length.checked_sub(reference.length);
        let in_head = |lead: &u64| *lead <= head.as_bytes().len() as u64 && *lead < pull.wanted;
        let Some(offset) = lead.filter(in_head) else { return self.ask(now, pull) };
        self.reads.queue.push_back(Reading { pull: Pull { offset, ..pull }, reference, head });
    }

    /// What is to be read next, if anything is. Say by [`handle_read`](Self::handle_read) whether
    /// it could be, before any other call.
    pub fn next_read(&mut self) -> Option<Read<'_>> {
        let Reads { queue, asked, room, .. } = &mut self.reads;
        let reading = queue.front()?;
        let pull = &reading.pull;
        let from = self.peers.get(pull.peer)?.address;
        let sink = &mut self.receives.get_mut(pull.receive)?.sink;
        let most = (pull.wanted - pull.offset).min(PIECE) as usize;
        let length = sink.piece(pull.offset, most).len();
        let is_copied = length == 0;
        *asked = if is_copied { most.min(COPIED) } else { length };
        room.clear();
        let place = if is_copied {
            room.resize(*asked, 0);
            &mut room[..]
        } else {
            sink.piece(pull.offset, length)
        };
        let reference = reading.reference.part(pull.offset - reading.lead(), *asked as u64);
        Some(Read { from, reference, place })
    }

    /// What [`next_read`](Self::next_read) named is in its place, or cannot be read.
    pub fn handle_read(&mut self, now: Instant, is_read: bool) {
        let Some(mut reading) = self.reads.queue.pop_front() else { return };
        let lead = reading.lead() as usize;
        let Reading { pull, head, .. } = &mut reading;
        if !is_read {
            return self.ask(now, Pull { offset: 0, ..*pull });
        }
        let room = core::mem::take(&mut self.reads.room);
        self.write(pull.receive, pull.offset, &room);
        self.reads.room = room;
        pull.offset += self.reads.asked as u64;
        if pull.offset < pull.wanted {
            return self.reads.queue.push_front(reading);
        }
        self.write(pull.receive, 0, &head.as_bytes()[..lead]);
        self.finish_pull(now, *pull);
    }
}
