//! How two endpoints become peers.
//!
//! ```text
//!  a                                      b
//!  │── connect: request, token Ta ───────▶│ frames to a must bear Ta from now on
//!  │◀─ connect: accepted, token Tb ───────│ (this frame bears Ta)
//!  │── probe, or any frame that bears Tb ▶│ a is alive: it is not an old request
//!  │◀─ any frame that bears Ta ───────────│ b knows it
//! ```
//!
//! Only a repeats what may be lost: its request, then its probe. Until b has heard Tb, its frames
//! may go to an address that was forged, so it sends one for each request and no other.
//!
//! Each end chooses a token at random, and drops frames of the other that do not bear it. A request
//! from a peer that b already has, in another life, replaces that peer only when a frame arrives
//! with the new token: so neither an old frame that the network kept nor a forged one can break a
//! connection. Both ends may ask at the same time; then each is connected when it is answered. A
//! token is never used for two lives of a peer.

use base::time::{Duration, Instant};

use super::Endpoint;
use super::timers::Stray;
use crate::address::Address;
use crate::buffers::{Sink, Source};
use crate::config::MIN_MTU;
use crate::counters::DropReason;
use crate::ids::PeerId;
use crate::peer::{ConnectionState, Due, Inbound, RemoteIdentity};
use crate::status::{Event, Refusal, RequestError};
use crate::wire::{Connect, ConnectStatus, FrameType, Header, VERSION};

/// How long until the first repetition of a request.
pub(super) const CONNECT_AGAIN: Duration = Duration::from_millis(10);

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// Connects to the endpoint at this address, which must have this key;
    /// [`Event::Connected`] reports how that ended, after `timeout` at the latest. Messages may be
    /// sent at once; they wait.
    ///
    /// A peer that there is already is asked whether it still is. If it turns out to have been
    /// restarted, [`RequestError::Restarted`] reports that this connection is over: connect again.
    ///
    /// # Errors
    /// If this endpoint is being closed.
    pub fn connect(
        &mut self,
        now: Instant,
        address: Address,
        key: u32,
        timeout: Duration,
    ) -> Result<PeerId, Refusal> {
        if self.closing {
            return Err(Refusal::Closing);
        }
        if let Some(id) = self.peers.at(address) {
            self.connect_again(now, id, key, timeout);
            return Ok(id);
        }
        let id = self.add_peer(address, ConnectionState::Connecting);
        self.peers.set_address(address, id);
        if address == self.address {
            return Ok(self.connect_to_self(id, key));
        }
        if let Some(peer) = self.peers.get_mut(id) {
            peer.key = key;
            peer.connect_until = Some(now + timeout);
            peer.connect_at = Some(now + CONNECT_AGAIN);
            peer.due.connects = 1;
        }
        self.act(now, id);
        Ok(id)
    }

    fn connect_again(&mut self, now: Instant, id: PeerId, key: u32, timeout: Duration) {
        self.is_no_guest(id);
        let Some(peer) = self.peers.get_mut(id) else { return };
        match peer.link {
            ConnectionState::Up if peer.address == self.address => {
                self.events.push_back(Event::Connected(id, Ok(())));
            }
            // What is known of it may be old.
            ConnectionState::Up => {
                peer.wanted_until = Some(now + timeout);
                (peer.connect_at, peer.attempts) = (Some(now + CONNECT_AGAIN), 0);
                peer.due.ask();
                self.act(now, id);
            }
            ConnectionState::Connecting => {}
            // It has asked as well, and is just being asked whether it is still there.
            ConnectionState::Answered => {
                peer.key = key;
                peer.wanted_until = Some(now + timeout);
                peer.connect_until = Some(now + Duration::from_nanos(timeout.as_nanos() / 2));
                peer.connect_at = Some(now + CONNECT_AGAIN);
                self.timer_changed(now, id);
            }
        }
    }

    /// A peer that had asked is gone, but is wanted: its introduction is dropped, and it is asked.
    /// No frame has been sent to it, and none that it sends now bears the new token.
    pub(super) fn start_over(&mut self, now: Instant, id: PeerId) {
        let token = self.random.next_u64() as u32;
        let Some(peer) = self.peers.get_mut(id) else { return };
        (peer.link, peer.theirs, peer.token) = (ConnectionState::Connecting, None, token);
        peer.connect_until = peer.wanted_until.take();
        (peer.connect_at, peer.attempts) = (Some(now + CONNECT_AGAIN), 0);
        peer.due = Due { connects: 1, ..Due::default() };
        self.act(now, id);
    }

    fn connect_to_self(&mut self, id: PeerId, key: u32) -> PeerId {
        let result = if key == self.config.key { Ok(()) } else { Err(RequestError::BadKey) };
        if let Some(peer) = self.peers.get_mut(id) {
            peer.link = ConnectionState::Up;
        }
        if let Err(reason) = result {
            self.forget(id, reason);
        }
        self.events.push_back(Event::Connected(id, result));
        id
    }

    pub(super) fn connect_arrived(
        &mut self,
        now: Instant,
        address: Address,
        header: &Header,
        connect: Connect,
    ) {
        if connect.mtu < MIN_MTU {
            return self.counters.drop(DropReason::Malformed);
        }
        self.counters.received[FrameType::Connect.index()] += 1;
        if connect.status == ConnectStatus::Request {
            self.request_arrived(now, address, header, connect);
        } else {
            self.answer_arrived(now, address, header, connect);
        }
    }

    fn request_arrived(
        &mut self,
        now: Instant,
        address: Address,
        header: &Header,
        connect: Connect,
    ) {
        let status = match () {
            () if self.closing => ConnectStatus::Busy,
            () if connect.version != VERSION => ConnectStatus::BadVersion,
            () if connect.key != self.config.key => ConnectStatus::BadKey,
            () => ConnectStatus::Accepted,
        };
        if status != ConnectStatus::Accepted {
            return self.stray(Stray::Answer { to: address, token: connect.token, status });
        }
        let theirs = RemoteIdentity { instance: connect.instance, token: connect.token };
        let known = self.peers.at(address);
        let theirs_of = |id: PeerId| self.peers.get(id).and_then(|peer| peer.theirs);
        let is_asked = |id: PeerId| {
            self.peers.get(id).is_some_and(|peer| peer.link == ConnectionState::Connecting)
        };
        let candidate = self.peers.candidates.get(&address).copied();
        let id = match known {
            // They have asked before, and did not hear the answer.
            Some(id) if theirs_of(id) == Some(theirs) => id,
            // Both asked at the same time, or the network has kept this one from an earlier life:
            // only an answer shows which.
            Some(id) if is_asked(id) => id,
            Some(_) if candidate.and_then(theirs_of) == Some(theirs) => {
                candidate.unwrap_or_default()
            }
            known => {
                let host = self.host_of(address.nic);
                // One that may replace a peer takes its place.
                if known.is_none() && !self.has_place(host) {
                    self.doubt_guests(now, host);
                    return self.counters.drop(DropReason::TooManyPeers);
                }
                let id = self.add_peer(address, ConnectionState::Answered);
                self.adopt(now, id, header, connect);
                self.note_answered(now, id);
                if self.peers.at(address).is_none() {
                    self.peers.set_address(address, id);
                    self.is_guest(id, host);
                } else if let Some(old) = self.peers.candidates.insert(address, id) {
                    self.forget(old, RequestError::Timeout);
                }
                id
            }
        };
        if let Some(peer) = self.peers.get_mut(id) {
            peer.due.answer = Some(connect.token);
        }
        self.act(now, id);
    }

    fn answer_arrived(
        &mut self,
        now: Instant,
        address: Address,
        header: &Header,
        connect: Connect,
    ) {
        let known = self.peers.at(address);
        let asked =
            |id: &PeerId| self.peers.get(*id).is_some_and(|peer| peer.token == header.token);
        let Some(id) = known.filter(asked) else { return self.counters.drop(DropReason::BadToken) };
        let link = self.peers.get(id).map(|peer| peer.link);
        match (connect.status, link) {
            (ConnectStatus::Accepted, Some(ConnectionState::Connecting)) => {
                if let Some(peer) = self.peers.get_mut(id).filter(|peer| peer.attempts == 0)
                    && let Some(again_at) = peer.connect_at
                {
                    // The first measure of the way: later there may be a queue on it.
                    let left = again_at.since(now);
                    peer.outbound.rtt.update(CONNECT_AGAIN - left);
                }
                self.adopt(now, id, header, connect);
            }
            (ConnectStatus::Accepted, _) => {}
            (status, Some(ConnectionState::Connecting)) => {
                let reason = match status {
                    ConnectStatus::BadKey => RequestError::BadKey,
                    ConnectStatus::BadVersion => RequestError::BadVersion,
                    _ => RequestError::Busy,
                };
                return self.lose(now, id, reason);
            }
            _ => return self.counters.drop(DropReason::Stale),
        }
        if let Some(peer) = self.peers.get_mut(id) {
            // The third leg: it shows that we are alive.
            peer.due.ask();
        }
        self.act(now, id);
    }

    fn adopt(&mut self, now: Instant, id: PeerId, header: &Header, connect: Connect) {
        let config = self.config;
        let Some(peer) = self.peers.get_mut(id) else { return };
        let theirs = RemoteIdentity { instance: connect.instance, token: connect.token };
        peer.theirs = Some(theirs);
        peer.mtu = config.mtu.min(connect.mtu).into();
        peer.crc = config.crc || connect.crc;
        peer.inbound = Inbound::new(header.seq);
        peer.outbound.meet(header);
        // One that never says another word was never alive, or did not live to hear the third leg.
        peer.connect_until = Some(now + config.peer_timeout);
        (peer.connect_at, peer.attempts, peer.due.connects) = (None, 0, 0);
        if peer.link == ConnectionState::Connecting {
            peer.link = ConnectionState::Up;
            peer.connect_at = Some(now + CONNECT_AGAIN);
            self.events.push_back(Event::Connected(id, Ok(())));
            self.grant(id);
        }
    }
}
