//! Messages that were there when their peer was lost. They can still be received, and take up
//! memory until they are: only so much, since a peer may come and go again and again. Those of the
//! peers that were lost first are dropped for those of later ones.

use alloc::vec::Vec;

use super::peers::Orphans;
use super::{Contents, Endpoint, Message};
use crate::buffers::{Sink, Source};
use crate::ids::PeerId;

/// So many lost peers may leave messages.
const MAX_PEERS: usize = 256;
/// All of them together may leave this part of the messages and bytes that all peers share, but
/// so many messages, and the bytes of one peer, in any case.
const PART: u32 = 4;
const LEAST: u32 = 64;

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// A peer is lost, and so many messages and bytes of it are here.
    pub(super) fn leave(&mut self, id: PeerId, messages: u32, bytes: u32) {
        if messages == 0 {
            return;
        }
        self.orphans.peers.push_back(id);
        self.orphans.messages += messages;
        self.orphans.bytes += u64::from(bytes);
        while self.are_orphans_too_many()
            && let Some(oldest) = self.orphans.peers.pop_front()
        {
            self.drop_orphans(oldest);
        }
    }

    fn are_orphans_too_many(&self) -> bool {
        let Orphans { peers, messages, bytes } = &self.orphans;
        let most_messages = (self.config.unexpected_messages / PART).max(LEAST);
        let most_bytes = self.config.unexpected_bytes / u64::from(PART);
        peers.len() > MAX_PEERS
            || *messages > most_messages
            || *bytes > most_bytes.max(self.config.peer_credit.into())
    }

    fn drop_orphans(&mut self, id: PeerId) {
        let mut gone = Vec::new();
        self.matching.waiting.remove_from(id, &mut self.counters.compared, |message| {
            gone.push(message);
            true
        });
        self.counters.orphans_dropped += gone.len() as u64;
        for message in gone {
            if let Some(Message { contents: Contents::Eager(data, _), .. }) =
                self.remove_message(message)
            {
                self.release_orphan(data.len() as u32);
            }
        }
    }

    /// So many bytes of a lost peer's were kept until now.
    pub(super) fn release_orphan(&mut self, bytes: u32) {
        self.reserved_bytes = self.reserved_bytes.saturating_sub(bytes.into());
        self.orphans.bytes = self.orphans.bytes.saturating_sub(bytes.into());
    }
}
