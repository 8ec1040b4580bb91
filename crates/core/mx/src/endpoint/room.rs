//! Room for messages that wait: so much for each peer that one cannot take that of the others.
//!
//! A peer may have as many messages waiting as there is room for others besides (dynamic
//! thresholds; Choudhury and Hahne, 1998). One alone takes half of all room, two that take what
//! they get a third each, and one that comes later finds room. [`LEAST`] are always permitted. Ends
//! of transfers that a peer does not acknowledge count as well.
//!
//! A peer that has its share finds the flag *full* in every frame, and begins no more messages;
//! nothing is lost. What it has sent before that fits into its window. One that
//! sends more breaks the protocol.

use base::time::Instant;

use super::{Endpoint, Message};
use crate::buffers::{Sink, Source};
use crate::config::Config;
use crate::ids::{MessageId, PeerId, ReceiveId};
use crate::peer::Peer;
use crate::waiting::Waiting;

/// So many messages of each peer may wait, whatever others have sent.
const LEAST: u32 = 64;
/// So many bytes of eager messages each peer may send before they are received: the longest one.
const LEAST_BYTES: u32 = 32 << 10;
/// Of the bytes that are left, a new peer may have this part.
const PART: u64 = 4;

impl<S: Source, R: Sink> Endpoint<S, R> {
    fn messages_each(&self) -> u32 {
        let all = self.config.unexpected_messages;
        all.saturating_sub(self.messages.len() as u32).max(LEAST.min(all))
    }

    /// Bytes of eager messages that every peer may send before they are received.
    pub(super) fn least_bytes(&self) -> u32 {
        let Config { peer_credit, unexpected_bytes, .. } = self.config;
        LEAST_BYTES.min(peer_credit).min(unexpected_bytes.min(u32::MAX.into()) as u32)
    }

    /// Bytes of eager messages that another peer may send before they are received.
    pub(super) fn share_of_bytes(&self) -> u32 {
        let left = self.config.unexpected_bytes.saturating_sub(self.reserved_bytes);
        (left / PART).min(self.config.peer_credit.into()) as u32
    }

    pub(super) fn grant(&mut self, id: PeerId) {
        let share = self.share_of_bytes();
        if let Some(peer) = self.peers.get_mut(id)
            && let Some(more) = share.checked_sub(peer.share)
        {
            peer.share = share;
            peer.granted = peer.granted.plus(more);
            self.reserved_bytes += u64::from(more);
        }
    }

    /// The receive that a message belongs to; it waits no longer.
    pub(super) fn match_message(&mut self, match_info: u64, source: PeerId) -> Option<ReceiveId> {
        self.matching.match_message(match_info, source, &mut self.counters.compared)
    }

    pub(super) fn keep_message(&mut self, message: Message) -> MessageId {
        let Message { source, match_info, .. } = message;
        let id = self.messages.insert(message);
        self.matching.waiting.push(Waiting { message: id, match_info, source });
        self.counters.unexpected += 1;
        if let Some(peer) = self.peers.get_mut(source) {
            peer.waiting += 1;
        }
        self.takes_room(source);
        id
    }

    pub(super) fn remove_message(&mut self, id: MessageId) -> Option<Message> {
        let message = self.messages.remove(id)?;
        self.claimed.remove(&(message.source, id));
        match self.peers.get_mut(message.source) {
            Some(peer) => peer.waiting -= 1,
            None => self.orphans.messages -= 1,
        }
        Some(message)
    }

    /// A peer takes up more room than before: it may have its share now.
    pub(super) fn takes_room(&mut self, id: PeerId) {
        let most = self.messages_each();
        if let Some(peer) = self.peers.get_mut(id)
            && peer.full_since.is_none()
            && peer.room_taken() >= most
        {
            peer.full_since = Some(peer.inbound.next());
        }
    }

    /// There may be room for more messages of this peer.
    pub(super) fn unless_full(&mut self, now: Instant, id: PeerId) {
        let Some(peer) = self.peers.get(id).filter(|peer| peer.full_since.is_some()) else {
            return;
        };
        if peer.room_taken() <= self.messages_each() / 4 * 3
            && let Some(peer) = self.peers.get_mut(id)
        {
            peer.full_since = None;
            peer.inbound.ack_now();
            self.act(now, id);
        }
    }
}

impl Peer {
    /// Messages of it that wait, and ends of transfers that it has not made room for.
    fn room_taken(&self) -> u32 {
        self.waiting + self.outbound.notifies.len() as u32
    }

    /// Whether it may begin a message with the frame that comes next, as far as it can know.
    pub(super) fn may_begin(&self, window: u16) -> bool {
        let ahead = |since| self.inbound.next().after(since);
        self.full_since.is_none_or(|since| ahead(since) < window.into())
    }
}
