//! Eager messages: those that arrive before a receive asks for them.

use alloc::vec;

use base::time::Instant;

use super::requests::Delivery;
use super::{Contents, Endpoint, Message};
use crate::buffers::{Sink, Source};
use crate::ids::{MessageId, PeerId, SendId};
use crate::peer::{Arriving, EagerTarget};
use crate::status::RequestError;

/// Of the sends in memory that was lent, so many are remembered in vain.
const ENDED_LENT: usize = 256;

#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) match_info: u64,
    pub(super) total: u32,
    pub(super) offset: u32,
    pub(super) data: &'a [u8],
}

impl<S: Source, R: Sink> Endpoint<S, R> {
    pub(super) fn eager_left(&mut self, send: SendId) {
        let Some(sending) = self.sends.get(send) else { return };
        let total = sending.total;
        if !sending.source.is_lent() || total == 0 {
            return self.complete_send(send, Ok(()), total);
        }
        if self.lent.len() > ENDED_LENT + self.sends.len() {
            let sends = &self.sends;
            self.lent.retain(|lent| sends.contains_key(*lent));
        }
        self.lent.push_back(send);
    }

    /// Ends a send that only waits for an acknowledgement because its memory is lent; false if none
    /// does. What is lost is sent again from a copy. For one whose program waits for such ends.
    pub fn end_lent(&mut self) -> bool {
        while let Some(send) = self.lent.pop_front() {
            if let Some(sending) = self.sends.get_mut(send)
                && !sending.is_complete
            {
                sending.source.keep();
                let total = sending.total;
                self.complete_send(send, Ok(()), total);
                return true;
            }
        }
        false
    }

    /// A piece has come; pieces come in order. An error breaks the protocol.
    pub(super) fn arrived(&mut self, now: Instant, id: PeerId, piece: Piece<'_>) -> Result<(), ()> {
        let Some(peer) = self.peers.get_mut(id) else { return Ok(()) };
        let arriving = match peer.arriving.take() {
            None if piece.offset == 0 => self.begin(now, id, piece)?,
            Some(arriving) if arriving.continues_with(&piece) => arriving,
            _ => return Err(()),
        };
        match arriving.target {
            EagerTarget::Receive(receive) => {
                self.write(receive, piece.offset.into(), piece.data);
            }
            EagerTarget::Message(message) => {
                if let Some(Message { contents: Contents::Eager(data, have), .. }) =
                    self.messages.get_mut(message)
                {
                    let at = piece.offset as usize;
                    data[at..at + piece.data.len()].copy_from_slice(piece.data);
                    *have += piece.data.len() as u32;
                }
            }
        }
        let have = arriving.have + piece.data.len() as u32;
        let arriving = Arriving { have, ..arriving };
        if have < arriving.total {
            if let Some(peer) = self.peers.get_mut(id) {
                peer.arriving = Some(arriving);
            }
        } else if let EagerTarget::Receive(receive) = arriving.target {
            let length = u64::from(arriving.total);
            let (match_info, transferred) =
                (arriving.match_info, length.min(self.room_of(receive)));
            let delivery = Delivery { match_info, length, transferred };
            self.complete_receive(receive, delivery.result(), Some(id), delivery);
        }
        Ok(())
    }

    /// The first piece of a message decides where all of it goes.
    fn begin(&mut self, now: Instant, id: PeerId, piece: Piece<'_>) -> Result<Arriving, ()> {
        let Piece { match_info, total, .. } = piece;
        let Some(peer) = self.peers.get_mut(id) else { return Err(()) };
        // A peer that sends more than it was permitted could fill our memory.
        let bytes = u64::from(peer.unexpected) + u64::from(total);
        if bytes > peer.share.into() || !peer.may_begin(self.config.window) {
            return Err(());
        }
        peer.unexpected += total;
        let target = if let Some(receive) = self.match_message(match_info, id) {
            self.give_back(now, id, total);
            EagerTarget::Receive(receive)
        } else if self.closing {
            self.give_back(now, id, total);
            // There is none of this name: the pieces are dropped.
            EagerTarget::Message(MessageId::default())
        } else {
            let contents = Contents::Eager(vec![0; total as usize], 0);
            let message = Message { source: id, match_info, total: total.into(), contents };
            EagerTarget::Message(self.keep_message(message))
        };
        Ok(Arriving { match_info, total, have: 0, target })
    }

    /// So many bytes of a peer's may be used again. It hears of that at once only if it could be
    /// about to run out.
    pub(super) fn give_back(&mut self, now: Instant, id: PeerId, bytes: u32) {
        let Some(peer) = self.peers.get_mut(id) else {
            // It was lost since; the memory that was promised to it has been kept until now.
            return self.release_orphan(bytes);
        };
        peer.unexpected -= bytes;
        peer.granted = peer.granted.plus(bytes);
        if peer.granted.after(peer.granted_sent) as u32 > peer.share / 2 {
            peer.inbound.ack_now();
            self.act(now, id);
        }
    }

    pub(super) fn break_off(&mut self, id: PeerId, arriving: Arriving, reason: RequestError) {
        match arriving.target {
            EagerTarget::Receive(receive) => {
                let delivery = Delivery {
                    match_info: arriving.match_info,
                    length: arriving.total.into(),
                    transferred: arriving.have.into(),
                };
                self.complete_receive(receive, Err(reason), Some(id), delivery);
            }
            EagerTarget::Message(message) => {
                let compared = &mut self.counters.compared;
                self.matching.waiting.remove_from(id, compared, |waiting| waiting == message);
                if self.remove_message(message).is_some()
                    && let Some(peer) = self.peers.get_mut(id)
                {
                    peer.unexpected -= arriving.total;
                }
            }
        }
    }
}

impl Arriving {
    fn continues_with(&self, piece: &Piece<'_>) -> bool {
        (self.match_info, self.total, self.have) == (piece.match_info, piece.total, piece.offset)
    }
}
