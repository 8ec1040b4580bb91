//! How connections open: who may, and what each step leads to.

use std::net::SocketAddrV4;

use ::mx::outgoing::BulkPath;
use base::time::Instant;
use rustix::event::epoll::{self, EventData, EventFlags};
use sys::clock;

use super::super::NicId;
use super::asks::{Ask, Key, Nonce};
use super::link::Link;
use super::opening::{Opening, Step};
use super::{Bulk, Connection, LEAST_PORT, MAX_LINKS, MAX_OPENING, OPENS_FOR};

impl Bulk {
    fn add(&mut self, opening: Opening, flags: EventFlags) {
        self.latest_token += 1;
        let token = self.latest_token;
        if epoll::add(&self.epoll, &opening, EventData::new_u64(token), flags).is_ok() {
            self.connections.insert(token, Connection::Opening(opening));
        }
    }

    /// The connections that are being opened and are not too old, and the peers that they call.
    fn opening(&mut self, now: Instant) -> impl Iterator<Item = (u64, Option<Key>)> + '_ {
        self.connections.retain(|_, connection| match connection {
            Connection::Opening(opening) => now.since(opening.since) < OPENS_FOR,
            Connection::Open(..) => true,
        });
        self.connections.iter().filter_map(|(token, connection)| match connection {
            Connection::Opening(opening) => Some((*token, opening.called())),
            Connection::Open(..) => None,
        })
    }

    /// Whether a peer at this NIC may be called: those at others may be, too, as often.
    fn may_call(&mut self, now: Instant, nic: NicId) -> bool {
        let called: Vec<_> = self.opening(now).filter_map(|(_, peer)| peer).collect();
        let of_nic = called.iter().filter(|(other, _)| *other == nic).count();
        of_nic < MAX_OPENING.saturating_sub(called.len()) && self.links.len() < MAX_LINKS
    }

    /// A connection comes in. If too many wait for their first bytes, the oldest makes place.
    pub(super) fn accept(&mut self) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        let now = clock::now();
        let waiting = self.opening(now).filter(|(_, called)| called.is_none());
        let waiting: Vec<_> = waiting.map(|(token, _)| token).collect();
        if waiting.len() >= MAX_OPENING
            && let Some(oldest) = waiting.into_iter().min()
        {
            self.connections.remove(&oldest);
            self.counters.strange += 1;
        }
        if self.links.len() < MAX_LINKS && stream.set_nonblocking(true).is_ok() {
            self.add(Opening::accepted(stream, now), EventFlags::IN);
        } else {
            self.counters.strange += 1;
        }
    }

    /// A frame about a connection has come.
    pub(super) fn on_ask(&mut self, from: NicId, frame: &[u8]) {
        let Some((endpoint, ask)) = Ask::read(frame) else {
            self.counters.strange += 1;
            return;
        };
        let peer = (from, endpoint);
        match ask {
            Ask::Call(to, nonce) => self.call(peer, to, nonce),
            Ask::Coming(nonce, welcome) if self.asked.coming(peer, nonce, welcome) => {
                // It may have been faster than this frame.
                let waiting = self.connections.iter();
                let is_opening = |(token, connection): (&u64, &Connection)| {
                    matches!(connection, Connection::Opening(_)).then_some(*token)
                };
                let waiting: Vec<u64> = waiting.filter_map(is_opening).collect();
                waiting.into_iter().for_each(|token| self.advance(token));
            }
            Ask::Coming(..) => self.counters.strange += 1,
        }
    }

    /// Connects to a peer that asks for it.
    fn call(&mut self, peer: Key, to: SocketAddrV4, nonce: Nonce) {
        let now = clock::now();
        let is_this_host = to.ip().is_unspecified() || to.ip() == self.address.ip();
        if is_this_host || to.port() < LEAST_PORT {
            self.counters.strange += 1;
            return;
        }
        if self.asked.is_race(self.own, peer, now) || !self.may_call(now, peer.0) {
            return;
        }
        let welcome = self.asked.nonce();
        let own = (self.own, self.address);
        if let Ok(opening) = Opening::call(self.interface, own, (peer, to), (nonce, welcome), now) {
            self.asks.push((peer, Ask::Coming(nonce, welcome)));
            // Writable once it is connected.
            self.add(opening, EventFlags::IN | EventFlags::OUT);
        }
    }

    /// A connection that is being opened goes on.
    pub(super) fn advance(&mut self, token: u64) {
        let Some(Connection::Opening(opening)) = self.connections.get_mut(&token) else { return };
        match opening.advance() {
            Ok(Step::Waits) => self.listen(token, EventFlags::IN),
            Ok(Step::SaysHello(peer, nonce)) => match self.asked.answer(peer, nonce) {
                Ok(Some(welcome)) if opening.welcome(welcome).is_ok() => self.opened(token, peer),
                // What it wants to hear is on its way.
                Ok(None) => {}
                _ => {
                    self.counters.strange += 1;
                    self.connections.remove(&token);
                }
            },
            Ok(Step::IsOpen(peer)) => self.opened(token, peer),
            Err(_) => drop(self.connections.remove(&token)),
        }
    }

    /// A connection is open, and replaces what there has been.
    fn opened(&mut self, token: u64, peer: Key) {
        let Some(Connection::Opening(opening)) = self.connections.remove(&token) else { return };
        if let Some(old) = self.links.get(&peer).copied() {
            self.close(old);
        }
        let stream = opening.into_stream();
        self.connections.insert(token, Connection::Open(peer, Link::new(stream)));
        self.links.insert(peer, token);
        self.broken.remove(&peer);
        self.listen(token, EventFlags::IN);
        self.changed(peer, BulkPath::Open);
    }
}
