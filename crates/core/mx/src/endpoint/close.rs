//! Closing an endpoint, and losing peers.

use alloc::vec::Vec;

use base::time::Instant;

use super::timers::Stray;
use super::{Contents, Endpoint, Message};
use crate::buffers::{Sink, Source};
use crate::ids::PeerId;
use crate::peer::{ConnectionState, Item};
use crate::status::{Event, RequestError};
use crate::waiting::WaitingMessages;
use crate::wire::{Header, Notify, REFUSED};

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// Ends this endpoint in good order: no new requests are taken, receives that no message has
    /// begun to come for end as aborted, messages that no receive has taken are dropped, and a peer
    /// is notified once it has acknowledged all messages and received the large ones. The owner
    /// goes on until [`Endpoint::is_closed`], or until it loses patience.
    pub fn close(&mut self, now: Instant) {
        if self.closing {
            return;
        }
        self.closing = true;
        let peers: Vec<_> = self.peers.addresses().collect();
        for (address, id) in peers {
            let link = self.peers.get(id).map(|peer| peer.link);
            if address == self.address || link == Some(ConnectionState::Connecting) {
                self.lose(now, id, RequestError::Aborted);
                continue;
            }
            if let Some(peer) = self.peers.get_mut(id) {
                peer.outbound.queue.push_back(Item::Close);
            }
            self.act(now, id);
        }
        self.drop_waiting(now);
        // The others have taken a message that comes.
        for receive in self.matching.drop_all_receives() {
            self.end_receive(receive, RequestError::Aborted, None);
        }
    }

    /// No receive will take what waits. Two that close would wait for each other, if it went on
    /// taking up room, or promised to be pulled.
    fn drop_waiting(&mut self, now: Instant) {
        self.matching.waiting = WaitingMessages::default();
        let ids: Vec<_> = self.messages.keys().collect();
        for id in ids {
            let Some(Message { source, contents, .. }) = self.remove_message(id) else { continue };
            match contents {
                Contents::Announced { region, .. } => self.refuse(now, source, region),
                Contents::Eager(data, _) => self.give_back(now, source, data.len() as u32),
                Contents::Local(_) => {}
            }
        }
        let peers: Vec<_> = self.peers.addresses().collect();
        for (_, id) in peers {
            self.unless_full(now, id);
        }
    }

    /// Tells a peer that it will not pull its message.
    pub(super) fn refuse(&mut self, now: Instant, id: PeerId, region: u32) {
        if let Some(peer) = self.peers.get_mut(id) {
            peer.outbound.notifies.push_back(Notify { region, delivered: REFUSED });
            self.takes_room(id);
            self.act(now, id);
        }
    }

    /// Whether everything that [`Endpoint::close`] waits for has happened.
    pub fn is_closed(&self) -> bool {
        self.closing && self.peers.addresses().next().is_none() && self.schedule.strays.is_empty()
    }

    /// A peer has closed its endpoint. It will not be there to hear a second acknowledgement.
    pub(super) fn peer_closed(&mut self, now: Instant, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        if let Some(early) = peer.inbound.advance() {
            self.early_bytes -= early.len() as u64;
        }
        let to = peer.address;
        let header = self.header(id, false);
        if let Some(header) = header {
            self.stray(Stray::LastAck { to, header: Header { marked: false, ..header } });
        }
        self.lose(now, id, RequestError::Closed);
    }

    /// A peer is lost: all that has to do with it ends.
    pub(super) fn lose(&mut self, now: Instant, id: PeerId, reason: RequestError) {
        let Some(peer) = self.peers.get(id) else { return };
        let address = peer.address;
        // Not of one that only asked to replace a peer.
        if self.peers.at(address) == Some(id) && self.bulk_paths.contains_key(&address) {
            self.lost_paths.push(address);
        }
        if peer.link == ConnectionState::Up {
            self.counters.peers_lost += 1;
            self.events.push_back(Event::Lost(id, reason));
        }
        if peer.link == ConnectionState::Connecting || peer.wanted_until.is_some() {
            self.events.push_back(Event::Connected(id, Err(reason)));
        }
        self.end_sends(id, reason);
        self.end_transfers(id, reason);
        if let Some(arriving) = self.peers.get_mut(id).and_then(|peer| peer.arriving.take()) {
            self.break_off(id, arriving, reason);
        }
        self.end_waiting(id, reason);
        let mut receives = Vec::new();
        self.matching.drop_receives(id, |receive| receives.push(receive));
        for receive in receives {
            self.end_receive(receive, reason, Some(id));
        }
        self.peers.clear_address(address, id);
        self.forget(id, reason);
        // What was asked of it takes up no room any more.
        self.ask_for_more(now);
    }

    /// Sends that are not complete end now; the others are not reported.
    fn end_sends(&mut self, id: PeerId, reason: RequestError) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let mut left = Vec::new();
        peer.outbound.abandon(|send| left.push(send));
        for send in left {
            self.complete_send(send, Err(reason), 0);
            // A message of several frames is in the list several times.
            self.sends.remove(send);
        }
    }

    /// Messages that wait and have not arrived will not; the others stay. Those to this endpoint
    /// itself are sends that end now.
    fn end_waiting(&mut self, id: PeerId, reason: RequestError) {
        let Self { messages, matching, counters, .. } = self;
        let is_gone = |id| messages.get(id).is_some_and(|message: &Message| !message.is_here());
        let claimed = self.claimed.iter().filter(|(peer, _)| *peer == id);
        let claimed = claimed.map(|(_, message)| *message);
        let mut gone: Vec<_> = claimed.filter(|message| is_gone(*message)).collect();
        matching.waiting.remove_from(id, &mut counters.compared, |message| {
            let gone_now = is_gone(message);
            gone.extend(gone_now.then_some(message));
            gone_now
        });
        for message in gone {
            let contents = self.remove_message(message).map(|message| message.contents);
            if let Some(Contents::Local(send)) = contents {
                self.complete_send(send, Err(reason), 0);
                self.sends.remove(send);
            }
        }
    }

    pub(super) fn forget(&mut self, id: PeerId, reason: RequestError) {
        let Some(peer) = self.peers.remove(id, reason) else { return };
        if let Some(at) = peer.timer_at {
            self.schedule.timers.remove(&(at, id));
        }
        // What it sent and no receive has taken still takes up memory.
        self.reserved_bytes -= u64::from(peer.share - peer.unexpected);
        self.early_bytes -= peer.inbound.early_bytes();
        self.leave(id, peer.waiting, peer.unexpected);
    }
}

impl Message {
    /// Whether all of its bytes are here, whatever becomes of its sender.
    fn is_here(&self) -> bool {
        match &self.contents {
            Contents::Eager(data, have) => data.len() == *have as usize,
            Contents::Announced { .. } | Contents::Local(_) => false,
        }
    }
}
