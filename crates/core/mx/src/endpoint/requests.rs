//! Requests of the application: sends, receives, probes, cancellation.

use alloc::vec::Vec;

use base::time::Instant;

use super::reads::Announced;
use super::{Contents, Endpoint, Message, Receiving, Sending};
use crate::buffers::{Sink, Source};
use crate::ids::{MessageId, PeerId, ReceiveId, SendId};
use crate::matching::{Match, Pattern};
use crate::peer::{EagerTarget, Item};
use crate::status::{Event, Refusal, RequestError, Status};

/// A message that a probe has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbedMessage {
    /// Its name, by which it is looked at or received.
    pub message: MessageId,
    /// Who sent it.
    pub peer: PeerId,
    /// Its match information.
    pub match_info: u64,
    /// Its length in bytes.
    pub length: u64,
}

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// Sends a message. It ends when the memory may be used again: a short message is on its way
    /// then, a long one was received. The event of the end carries `context`.
    ///
    /// # Errors
    /// If there is no such peer, or this endpoint is being closed.
    pub fn isend(
        &mut self,
        now: Instant,
        peer: PeerId,
        match_info: u64,
        source: S,
        context: u64,
    ) -> Result<SendId, Refusal> {
        self.start_send(now, peer, match_info, source, context, false)
    }

    /// Sends a message and ends when it was received: when a receive has taken it and its bytes are
    /// there.
    pub fn issend(
        &mut self,
        now: Instant,
        peer: PeerId,
        match_info: u64,
        source: S,
        context: u64,
    ) -> Result<SendId, Refusal> {
        self.start_send(now, peer, match_info, source, context, true)
    }

    fn start_send(
        &mut self,
        now: Instant,
        id: PeerId,
        match_info: u64,
        source: S,
        context: u64,
        synchronous: bool,
    ) -> Result<SendId, Refusal> {
        if self.closing {
            return Err(Refusal::Closing);
        }
        let Some(peer) = self.peers.get_mut(id) else {
            return Err(Refusal::NoPeer(self.peers.why_lost(id)));
        };
        let address = peer.address;
        let total = source.length();
        let sending = Sending {
            source,
            peer: id,
            match_info,
            total,
            context,
            synchronous,
            is_complete: false,
            begun: 0,
            is_out: false,
            unacked: 0,
        };
        let send = self.sends.insert(sending);
        self.counters.messages_sent += 1;
        if self.address == address {
            self.send_to_self(id, send, match_info, total);
            return Ok(send);
        }
        peer.outbound.queue.push_back(Item::Message(send));
        self.act(now, id);
        Ok(send)
    }

    /// Receives a message: the first one that fits, of those that have arrived and those to come.
    /// It fits if it comes from `source`, or from any peer if that is absent, and if its match
    /// information is `wanted`.
    ///
    /// # Errors
    /// If the match information has bits outside the mask, if the mask does not cover the bits that
    /// name the context, or if the source is lost and nothing that it sent fits.
    pub fn irecv(
        &mut self,
        now: Instant,
        source: Option<PeerId>,
        wanted: Match,
        sink: R,
        context: u64,
    ) -> Result<ReceiveId, Refusal> {
        let pattern = self.pattern(source, wanted)?;
        if self.closing {
            return Err(Refusal::Closing);
        }
        let waiting = self.matching.waiting.take(&pattern, &mut self.counters.compared);
        if let (None, Some(source)) = (waiting, source)
            && self.peers.get(source).is_none()
        {
            return Err(Refusal::NoPeer(self.peers.why_lost(source)));
        }
        let receive = self.receives.insert(Receiving {
            sink,
            match_info: wanted.info,
            context,
            quiet: false,
        });
        match waiting {
            Some(message) => self.bind(now, receive, message),
            None => self.matching.post(receive, pattern),
        }
        Ok(receive)
    }

    /// Receives a message that was [claimed](Endpoint::claim).
    ///
    /// # Errors
    /// If it is there no longer: a receive took it, or its sender was lost before all of it had
    /// come.
    pub fn receive_message(
        &mut self,
        now: Instant,
        message: MessageId,
        sink: R,
        context: u64,
    ) -> Result<ReceiveId, Refusal> {
        self.take_message(now, message, sink, context, false).ok_or(Refusal::NoMessage)
    }

    fn take_message(
        &mut self,
        now: Instant,
        message: MessageId,
        sink: R,
        context: u64,
        quiet: bool,
    ) -> Option<ReceiveId> {
        let match_info = self.messages.get(message)?.match_info;
        let receive = self.receives.insert(Receiving { sink, match_info, context, quiet });
        self.bind(now, receive, message);
        Some(receive)
    }

    /// The first message that fits and that no receive has taken (`mx_iprobe`). It goes on waiting.
    ///
    /// # Errors
    /// As for [`Endpoint::irecv`], as far as the mask is concerned.
    pub fn probe(
        &mut self,
        source: Option<PeerId>,
        wanted: Match,
    ) -> Result<Option<ProbedMessage>, Refusal> {
        let pattern = self.pattern(source, wanted)?;
        Ok(self
            .matching
            .waiting
            .find(&pattern, &mut self.counters.compared)
            .and_then(|message| self.found(message)))
    }

    /// The first message that fits and that no receive has taken. It is the caller's from now on:
    /// it has to be [received](Endpoint::receive_message) or [discarded](Endpoint::discard).
    pub fn claim(
        &mut self,
        source: Option<PeerId>,
        wanted: Match,
    ) -> Result<Option<ProbedMessage>, Refusal> {
        let pattern = self.pattern(source, wanted)?;
        let message = self.matching.waiting.take(&pattern, &mut self.counters.compared);
        let found = message.and_then(|message| self.found(message));
        self.claimed.extend(found.map(|found| (found.peer, found.message)));
        Ok(found)
    }

    /// Receives a message that was claimed into a place that is not read, `nowhere`, which need
    /// not have any room. False if it is there no longer.
    pub fn discard(&mut self, now: Instant, message: MessageId, nowhere: R) -> bool {
        self.take_message(now, message, nowhere, 0, true).is_some()
    }

    fn found(&self, message: MessageId) -> Option<ProbedMessage> {
        let Message { source, match_info, total, .. } = self.messages.get(message)?;
        Some(ProbedMessage { message, peer: *source, match_info: *match_info, length: *total })
    }

    fn pattern(&self, source: Option<PeerId>, wanted: Match) -> Result<Pattern, Refusal> {
        let Match { info, mask } = wanted;
        if info & !mask != 0 {
            return Err(Refusal::BadMask);
        }
        if !mask & self.config.context.mask() != 0 {
            return Err(Refusal::ContextNotCovered);
        }
        Ok(Pattern { source, wanted })
    }

    /// Takes a receive back that no message has come for; it ends as cancelled. False if a message
    /// has come, or it has ended.
    pub fn cancel(&mut self, receive: ReceiveId) -> bool {
        let Some(Receiving { match_info, .. }) = self.receives.get(receive) else { return false };
        let withdrawn = self.matching.withdraw(receive, *match_info);
        if withdrawn {
            self.end_receive(receive, RequestError::Cancelled, None);
        }
        withdrawn
    }

    pub(super) fn end_receive(
        &mut self,
        receive: ReceiveId,
        reason: RequestError,
        peer: Option<PeerId>,
    ) {
        let match_info = self.match_info_of(receive);
        let delivery = Delivery { match_info, length: 0, transferred: 0 };
        self.complete_receive(receive, Err(reason), peer, delivery);
    }

    pub(super) fn match_info_of(&self, receive: ReceiveId) -> u64 {
        self.receives.get(receive).map_or(0, |receive| receive.match_info)
    }

    pub(super) fn room_of(&self, receive: ReceiveId) -> u64 {
        self.receives.get(receive).map_or(0, |receive| receive.sink.capacity())
    }

    pub(super) fn bind(&mut self, now: Instant, receive: ReceiveId, id: MessageId) {
        let Some(message) = self.remove_message(id) else { return };
        let Message { source, match_info, total, contents } = message;
        match contents {
            Contents::Local(send) => self.deliver_locally(send, receive),
            Contents::Announced { region, head, reference } => {
                let reference = reference.map(|reference| *reference);
                let announced = Announced { match_info, total, region, head, reference };
                self.start_pull(now, receive, source, announced);
            }
            Contents::Eager(data, have) => {
                self.give_back(now, source, data.len() as u32);
                let taken = self.write(receive, 0, &data[..have as usize]);
                if u64::from(have) == total {
                    let delivery = Delivery { match_info, length: total, transferred: taken };
                    self.complete_receive(receive, delivery.result(), Some(source), delivery);
                } else if let Some(peer) = self.peers.get_mut(source)
                    && let Some(arriving) = &mut peer.arriving
                {
                    // The rest is on its way, and goes to where it is wanted.
                    arriving.target = EagerTarget::Receive(receive);
                }
            }
        }
        self.unless_full(now, source);
    }

    /// Writes a piece of a message as far as there is place for it, and says how much that was.
    pub(super) fn write(&mut self, receive: ReceiveId, offset: u64, data: &[u8]) -> u64 {
        let Some(Receiving { sink, .. }) = self.receives.get_mut(receive) else { return 0 };
        let room = sink.capacity().saturating_sub(offset).min(data.len() as u64);
        if room > 0 {
            sink.write(offset, &data[..room as usize]);
        }
        room
    }

    /// Ends a receive, and reports it unless it was discarded.
    pub(super) fn complete_receive(
        &mut self,
        receive: ReceiveId,
        result: Result<(), RequestError>,
        peer: Option<PeerId>,
        delivery: Delivery,
    ) {
        let Some(Receiving { sink, context, quiet, .. }) = self.receives.remove(receive) else {
            return;
        };
        if quiet {
            return;
        }
        if matches!(result, Ok(()) | Err(RequestError::Truncated)) {
            self.counters.messages_received += 1;
        }
        let Delivery { match_info, length, transferred } = delivery;
        let status = Status { result, peer, match_info, length, transferred, context };
        self.events.push_back(Event::Received(receive, status, sink));
    }

    pub(super) fn complete_send(
        &mut self,
        send: SendId,
        result: Result<(), RequestError>,
        transferred: u64,
    ) {
        let Some(sending) = self.sends.get_mut(send) else { return };
        if sending.is_complete {
            return;
        }
        sending.is_complete = true;
        let status = Status {
            result,
            peer: Some(sending.peer),
            match_info: sending.match_info,
            length: sending.total,
            transferred,
            context: sending.context,
        };
        self.events.push_back(Event::Sent(send, status));
    }

    /// A message to this endpoint itself: it is received from where it lies, so it always ends when
    /// it was received.
    fn send_to_self(&mut self, peer: PeerId, send: SendId, match_info: u64, total: u64) {
        if let Some(receive) = self.match_message(match_info, peer) {
            self.deliver_locally(send, receive);
            return;
        }
        let contents = Contents::Local(send);
        self.keep_message(Message { source: peer, match_info, total, contents });
    }

    fn deliver_locally(&mut self, send: SendId, receive: ReceiveId) {
        let (Some(sending), Some(receiving)) =
            (self.sends.get(send), self.receives.get_mut(receive))
        else {
            return;
        };
        let (peer, match_info, total) = (sending.peer, sending.match_info, sending.total);
        let wanted = total.min(receiving.sink.capacity());
        let mut piece = [0; 4096];
        let mut offset = 0;
        while offset < wanted {
            let length = (wanted - offset).min(piece.len() as u64) as usize;
            sending.source.read(offset, &mut piece[..length]);
            receiving.sink.write(offset, &piece[..length]);
            offset += length as u64;
        }
        let delivery = Delivery { match_info, length: total, transferred: wanted };
        let result = delivery.result();
        self.complete_receive(receive, result, Some(peer), delivery);
        self.complete_send(send, result, wanted);
        self.sends.remove(send);
    }

    /// Identifiers of the requests that have not ended, for a dump of the state.
    pub fn open_requests(&self) -> (Vec<SendId>, Vec<ReceiveId>) {
        let sends = self.sends.iter().filter(|(_, sending)| !sending.is_complete).map(|(id, _)| id);
        let receives = self.receives.iter().filter(|(_, receiving)| !receiving.quiet);
        (sends.collect(), receives.map(|(id, _)| id).collect())
    }
}

/// A message at the end of its receive: how long it is, and how much of it was delivered.
#[derive(Clone, Copy)]
pub(super) struct Delivery {
    pub(super) match_info: u64,
    pub(super) length: u64,
    pub(super) transferred: u64,
}

impl Delivery {
    pub(super) const fn result(&self) -> Result<(), RequestError> {
        arrived(self.length, self.transferred)
    }
}

/// How a request ends when a message of `length` bytes has arrived.
pub(super) const fn arrived(length: u64, delivered: u64) -> Result<(), RequestError> {
    if delivered < length { Err(RequestError::Truncated) } else { Ok(()) }
}
