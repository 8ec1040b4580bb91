//! Frames in: which peer they are from, and what each is for.

use alloc::boxed::Box;

use base::time::Instant;

use super::Endpoint;
use super::eager::Piece;
use super::reads::{Announced, Head};
use super::timers::Stray;
use crate::address::{Address, NicId};
use crate::buffers::{Sink, Source};
use crate::counters::DropReason;
use crate::ids::PeerId;
use crate::peer::{ConnectionState, Expected, FrameOrder, Item, Peer, Segment};
use crate::status::{Event, RequestError};
use crate::wire::{
    self, BULK_PAYLOAD, Body, FrameType, Header, Nack, NackReason, REFUSAL, RUN_HEAD,
};

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// A frame has come from this interface: `bytes` is what follows the EtherType. Whatever it is,
    /// it does no harm, and is counted if it is of no use.
    pub fn handle_frame(&mut self, now: Instant, from: NicId, bytes: &[u8]) {
        let Ok((header, body)) = wire::parse(bytes) else {
            return self.counters.drop(DropReason::Malformed);
        };
        if header.to != self.address.endpoint || self.is_self(from, header.from) {
            return self.counters.drop(DropReason::NotForUs);
        }
        let address = Address { nic: from, endpoint: header.from };
        // What changes a connection always bears a checksum.
        if matches!(body, Body::Connect(_) | Body::Nack(_)) && !header.crc {
            return self.counters.drop(DropReason::NoChecksum);
        }
        match body {
            Body::Connect(connect) => self.connect_arrived(now, address, &header, connect),
            Body::Nack(nack) => self.nack_arrived(now, address, nack),
            _ => {
                let refuse = body.frame_type().is_refused() && bytes.len() >= REFUSAL;
                if let Some(id) = self.peer_of(now, address, &header, refuse) {
                    self.peer_sent(now, id, &header, body, bytes);
                }
            }
        }
    }

    /// The peer that sent a frame, if it knows our token; whether to `refuse` the frame otherwise.
    fn peer_of(
        &mut self,
        now: Instant,
        address: Address,
        header: &Header,
        refuse: bool,
    ) -> Option<PeerId> {
        let known = self.peers.at(address);
        let knows_token =
            |id: &PeerId| self.peers.get(*id).filter(|peer| peer.token == header.token);
        if let Some(id) = known
            && let Some(peer) = knows_token(&id)
        {
            if peer.theirs.is_none() {
                // It has overtaken the answer to our request, or that was lost. It will come again.
                self.counters.drop(DropReason::Stranger);
                return None;
            }
            return self.has_checksum(id, header).then_some(id);
        }
        let knows_token = |id: &PeerId| knows_token(id).is_some();
        if let Some(id) = self.peers.candidates.get(&address).copied().filter(knows_token) {
            // The peer is alive, and another one than before.
            if let Some(old) = known {
                let guest_of = self.peers.get(old).and_then(|peer| peer.guest_of);
                self.lose(now, old, RequestError::Restarted);
                if let Some(host) = guest_of {
                    self.is_guest(id, host);
                }
            }
            self.peers.set_address(address, id);
            if self.closing
                && let Some(peer) = self.peers.get_mut(id)
            {
                peer.outbound.queue.push_back(Item::Close);
            }
            return self.has_checksum(id, header).then_some(id);
        }
        self.counters.drop(if known.is_some() {
            DropReason::BadToken
        } else {
            DropReason::Stranger
        });
        // One who waits for an answer should not wait in vain.
        if refuse {
            let (to, token, reason) = (address, header.token, NackReason::BadToken);
            self.stray(Stray::Nack { to, token, reason });
        }
        None
    }

    fn has_checksum(&mut self, id: PeerId, header: &Header) -> bool {
        let misses = self.peers.get(id).is_some_and(|peer| peer.crc) && !header.crc;
        if misses {
            self.counters.drop(DropReason::NoChecksum);
        }
        !misses
    }

    fn peer_sent(
        &mut self,
        now: Instant,
        id: PeerId,
        header: &Header,
        body: Body<'_>,
        bytes: &[u8],
    ) {
        self.counters.received[body.frame_type().index()] += 1;
        self.on_header(now, id, header, if let Body::Ack(bitmap) = body { bitmap } else { &[] });
        let result = match body {
            Body::Reply { pull, index, data } => {
                self.replied(now, id, (pull, index), data.len(), Some(data))
            }
            Body::Pull(asked) => {
                self.pulled(id, header.ask, asked);
                Ok(())
            }
            Body::Probe => {
                if let Some(peer) = self.peers.get_mut(id) {
                    peer.inbound.ack_now();
                }
                Ok(())
            }
            Body::Ack(_) => Ok(()),
            _ => self.number_arrived(now, id, header, body, bytes),
        };
        self.end_of_frame(now, id, result);
    }

    /// The place of data that are about to come, in the receive that they are for: those behind
    /// this `head` of a reply, of which `skip` bytes have come, and those of the replies right
    /// after it, `most` bytes at most. They are to be received there;
    /// [`handle_placed`](Self::handle_placed) is to be called for frames that are whole. `None` if
    /// they have to come as frames.
    pub fn place(
        &mut self,
        from: NicId,
        head: &[u8; RUN_HEAD],
        skip: usize,
        most: usize,
    ) -> Option<&mut [u8]> {
        let (header, name, index) = wire::parse_reply_head(head)?;
        let id = self.peers.at(Address { nic: from, endpoint: header.from })?;
        let peer = self.peers.get_mut(id)?;
        let is_known = peer.token == header.token && peer.theirs.is_some() && !peer.crc;
        if !is_known || header.to != self.address.endpoint {
            return None;
        }
        self.place_of(id, (name, index), skip, most)
    }

    /// The data of bulk frames have come where [`place`](Self::place) said: of the one with this
    /// `head`, and of those after it, `length` bytes in all.
    pub fn handle_placed(
        &mut self,
        now: Instant,
        from: NicId,
        head: &[u8; RUN_HEAD],
        length: usize,
    ) {
        let Some((header, name, index)) = wire::parse_reply_head(head) else {
            return self.counters.drop(DropReason::Malformed);
        };
        let address = Address { nic: from, endpoint: header.from };
        let Some(id) = self.peer_of(now, address, &header, false) else { return };
        self.counters.received[FrameType::Reply.index()] += length.div_ceil(BULK_PAYLOAD) as u64;
        self.on_header(now, id, &header, &[]);
        let result = self.replied(now, id, (name, index), length, None);
        self.end_of_frame(now, id, result);
    }

    /// A frame has been handled; an error breaks the protocol.
    fn end_of_frame(&mut self, now: Instant, id: PeerId, result: Result<(), ()>) {
        if result.is_err() {
            self.lose(now, id, RequestError::Protocol);
        }
        self.unless_full(now, id);
        self.act(now, id);
    }

    /// What every frame says: that its sender is there, what it has, and what it permits.
    fn on_header(&mut self, now: Instant, id: PeerId, header: &Header, bitmap: &[u8]) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.watch.liveness.received(Expected::AnyFrame, now);
        peer.is_doubted = false;
        if peer.connect_until.is_some() || peer.wanted_until.is_some() {
            peer.link = ConnectionState::Up;
            (peer.connect_until, peer.connect_at) = (None, None);
            if peer.wanted_until.take().is_some() {
                self.events.push_back(Event::Connected(id, Ok(())));
            }
            self.grant(id);
        }
        let Some(peer) = self.peers.get_mut(id) else { return };
        let mut done = core::mem::take(&mut self.done);
        let Self { config, .. } = self;
        let mut note = |segment| done.push(segment);
        let progress = peer.outbound.on_ack(now, header.ack, bitmap, config, &mut note);
        match progress {
            Some(progress) => {
                peer.outbound.permit(header);
                if progress.frames > 0 {
                    peer.watch.liveness.received(Expected::Ack, now);
                }
                self.counters.resent_needlessly += u64::from(progress.needless);
            }
            None => self.counters.drop(DropReason::Stale),
        }
        let mut is_closed = false;
        for segment in done.drain(..) {
            is_closed |= segment == Segment::Close;
            self.acknowledged(segment);
        }
        self.done = done;
        if is_closed {
            self.lose(now, id, RequestError::Aborted);
        }
    }

    fn acknowledged(&mut self, segment: Segment) {
        let (Segment::Small(id)
        | Segment::Medium { send: id, .. }
        | Segment::Announce { send: id, .. }) = segment
        else {
            return;
        };
        let Some(sending) = self.sends.get_mut(id) else { return };
        sending.unacked -= 1;
        if sending.unacked > 0 || !sending.is_out {
            return;
        }
        // A large message is complete when it was received. Of another one memory was lent.
        let (is_eager, total) = (sending.begun > 0, sending.total);
        if is_eager {
            self.complete_send(id, Ok(()), total);
        } else if !sending.is_complete {
            return;
        }
        self.sends.remove(id);
    }

    /// A numbered frame: it is processed in its turn.
    fn number_arrived(
        &mut self,
        now: Instant,
        id: PeerId,
        header: &Header,
        body: Body<'_>,
        bytes: &[u8],
    ) -> Result<(), ()> {
        let Some(peer) = self.peers.get_mut(id) else { return Ok(()) };
        // One peer takes no more than it leaves to the others.
        let free = self.config.early_bytes.saturating_sub(self.early_bytes);
        match peer.inbound.place(header.seq) {
            FrameOrder::Next => peer.watch.liveness.received(Expected::NextFrame, now),
            FrameOrder::Early if peer.inbound.early_bytes() + bytes.len() as u64 <= free => {
                self.early_bytes += bytes.len() as u64;
                peer.inbound.keep(header.seq, bytes);
                peer.inbound.ack_now();
                return Ok(());
            }
            FrameOrder::Early => return self.useless(DropReason::NoMemory),
            FrameOrder::Seen => {
                peer.inbound.ack_now();
                return self.useless(DropReason::Duplicate);
            }
            FrameOrder::Beyond => return self.useless(DropReason::BeyondWindow),
        }
        if header.ask {
            peer.inbound.ack_now();
        }
        self.process(now, id, body)?;
        while let Some(early) = self.advance(now, id) {
            self.early_bytes -= early.len() as u64;
            // It was read when it came.
            if let Ok((_, body)) = wire::parse(&early) {
                self.process(now, id, body)?;
            }
        }
        Ok(())
    }

    pub(super) fn useless(&mut self, reason: DropReason) -> Result<(), ()> {
        self.counters.drop(reason);
        Ok(())
    }

    fn advance(&mut self, now: Instant, id: PeerId) -> Option<Box<[u8]>> {
        let peer = self.peers.get_mut(id)?;
        peer.inbound.on_frame(now, self.config.ack_every, self.config.ack_delay);
        peer.inbound.advance()
    }

    fn process(&mut self, now: Instant, id: PeerId, body: Body<'_>) -> Result<(), ()> {
        match body {
            Body::Small(match_info, data) => {
                let total = data.len() as u32;
                self.arrived(now, id, Piece { match_info, total, offset: 0, data })
            }
            Body::Medium { match_info, total, offset, data } => {
                self.arrived(now, id, Piece { match_info, total, offset, data })
            }
            Body::Rendezvous { match_info, total, region, head } => {
                let (head, reference) = (Head::new(head), self.reads.reference.take());
                self.announced(now, id, Announced { match_info, total, region, head, reference })
            }
            Body::Notify(notify) => {
                self.notified(id, notify);
                Ok(())
            }
            Body::Close => {
                self.peer_closed(now, id);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn nack_arrived(&mut self, now: Instant, address: Address, nack: Nack) {
        let known = self.peers.at(address);
        let is_ours = |id: &PeerId| {
            self.peers.get(*id).is_some_and(|peer| match peer.theirs {
                Some(theirs) => theirs.token == nack.token,
                // A request to connect bears no token.
                None => nack.token == 0 && nack.reason == NackReason::NoEndpoint,
            })
        };
        let Some(id) = known.filter(is_ours) else {
            return self.counters.drop(DropReason::Stranger);
        };
        self.counters.received[FrameType::Nack.index()] += 1;
        let is_wanted =
            |peer: &Peer| peer.link == ConnectionState::Answered && peer.wanted_until.is_some();
        if self.peers.get(id).is_some_and(is_wanted) {
            return self.start_over(now, id);
        }
        let reason = match nack.reason {
            NackReason::NoEndpoint => RequestError::NoEndpoint,
            NackReason::BadToken => RequestError::Restarted,
        };
        self.lose(now, id, reason);
    }
}
