//! How connections open: who may, and what each step leads to.

use std::net::SocketAddrV4;

use ::mx::outgoing::BulkPath;
use base::time::Instant;
use rustix::event::epoll::{self, EventData, EventFlags};
use sys::clock;
use sys::streams::is_lack;

use super::super::{Address, NicId};
use super::asks::{Ask, Nonce};
use super::link::Link;
use super::opening::{Opening, OpeningStep};
use super::{Bulk, LEAST_PORT, LISTENER, MAX_LINKS, MAX_OPENING, OPENS_FOR, TcpConnection};

impl Bulk {
    fn add(&mut self, opening: Opening, flags: EventFlags) {
        self.latest_token += 1;
        let token = self.latest_token;
        if epoll::add(&self.epoll, &opening, EventData::new_u64(token), flags).is_ok() {
            self.connections.insert(token, TcpConnection::Opening(opening));
        }
    }

    /// The connections that are being opened and are not too old, and the peers that they call.
    fn opening(&mut self, now: Instant) -> impl Iterator<Item = (u64, Option<Address>)> + '_ {
        self.connections.retain(|_, connection| match connection {
            TcpConnection::Opening(opening) => now.since(opening.since) < OPENS_FOR,
            TcpConnection::Open(..) => true,
        });
        self.connections.iter().filter_map(|(token, connection)| match connection {
            TcpConnection::Opening(opening) => Some((*token, opening.called())),
            TcpConnection::Open(..) => None,
        })
    }

    fn may_call(&mut self, now: Instant, nic: NicId) -> bool {
        let called: Vec<_> = self.opening(now).filter_map(|(_, peer)| peer).collect();
        let of_nic = called.iter().filter(|other| other.nic == nic).count();
        of_nic < MAX_OPENING.saturating_sub(called.len()) && self.links.len() < MAX_LINKS
    }

    pub(super) fn accept_again(&mut self) {
        self.listen_to_listener(EventFlags::IN);
        self.accept();
    }

    fn listen_to_listener(&self, flags: EventFlags) {
        // It fails for none that was added.
        let _ = epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), flags);
    }

    /// A connection comes in. If too many wait for their first bytes, the oldest makes place.
    pub(super) fn accept(&mut self) {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                if is_lack(&error) {
                    self.listen_to_listener(EventFlags::empty());
                    self.again.later();
                }
                return;
            }
        };
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

    pub(super) fn on_ask(&mut self, from: NicId, frame: &[u8]) {
        let Some((endpoint, ask)) = Ask::read(frame) else {
            self.counters.strange += 1;
            return;
        };
        let peer = Address { nic: from, endpoint };
        match ask {
            Ask::Call(to, nonce) => self.call(peer, to, nonce),
            Ask::Coming(nonce, welcome) if self.asked.coming(peer, nonce, welcome) => {
                // It may have been faster than this frame.
                let waiting = self.connections.iter();
                let is_opening = |(token, connection): (&u64, &TcpConnection)| {
                    matches!(connection, TcpConnection::Opening(_)).then_some(*token)
                };
                let waiting: Vec<u64> = waiting.filter_map(is_opening).collect();
                waiting.into_iter().for_each(|token| self.advance(token));
            }
            Ask::Coming(..) => self.counters.strange += 1,
        }
    }

    fn call(&mut self, peer: Address, to: SocketAddrV4, nonce: Nonce) {
        let now = clock::now();
        let is_this_host = to.ip().is_unspecified() || to.ip() == self.address.ip();
        if is_this_host || to.port() < LEAST_PORT {
            self.counters.strange += 1;
            return;
        }
        if self.asked.is_race(self.own, peer, now) || !self.may_call(now, peer.nic) {
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

    pub(super) fn advance(&mut self, token: u64) {
        let Some(TcpConnection::Opening(opening)) = self.connections.get_mut(&token) else {
            return;
        };
        match opening.advance() {
            Ok(OpeningStep::Waits) => self.listen(token, EventFlags::IN),
            Ok(OpeningStep::SaysHello(peer, nonce)) => match self.asked.answer(peer, nonce) {
                Ok(Some(welcome)) if opening.welcome(welcome).is_ok() => self.opened(token, peer),
                // What it wants to hear is on its way.
                Ok(None) => {}
                _ => {
                    self.counters.strange += 1;
                    self.connections.remove(&token);
                }
            },
            Ok(OpeningStep::IsOpen(peer)) => self.opened(token, peer),
            Err(_) => drop(self.connections.remove(&token)),
        }
    }

    fn opened(&mut self, token: u64, peer: Address) {
        let Some(TcpConnection::Opening(opening)) = self.connections.remove(&token) else { return };
        if let Some(old) = self.links.get(&peer).copied() {
            self.close(old);
        }
        let stream = opening.into_stream();
        self.connections.insert(token, TcpConnection::Open(peer, Link::new(stream)));
        self.links.insert(peer, token);
        self.broken.remove(&peer);
        self.listen(token, EventFlags::IN);
        self.changed(peer, BulkPath::Open);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::mem::MaybeUninit;
    use std::net::{Ipv4Addr, TcpListener};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use rustix::event::Timespec;

    use super::super::AGAIN;
    use super::*;
    use crate::port::shm::{ShmPort, ShmSettings};

    #[test]
    fn connection_that_cannot_be_accepted_is_retried_and_wakes_no_thread_until_then() {
        let settings = ShmSettings::new(std::process::id() << 8 | 79, 1500);
        let outer = ShmPort::open(NicId([2, 0, 0, 0, 0, 7]), 1, settings).unwrap();
        let mut bulk = Bulk::new(&outer, 1, Ipv4Addr::LOCALHOST).unwrap();
        // No connection can be accepted from a connection, as if descriptors were lacking.
        let (mut far, connection) = UnixStream::pair().unwrap();
        far.write_all(b"x").unwrap();
        bulk.listener = TcpListener::from(OwnedFd::from(connection));
        epoll::add(&bulk.epoll, &bulk.listener, EventData::new_u64(LISTENER), EventFlags::IN)
            .unwrap();
        let next = |bulk: &Bulk| {
            let mut room = [const { MaybeUninit::uninit() }; 8];
            let limit = Timespec { tv_sec: 300, tv_nsec: 0 };
            let (events, _) = epoll::wait(&bulk.epoll, &mut room, Some(&limit)).unwrap();
            events.iter().map(|event| event.data.u64()).collect::<Vec<_>>()
        };
        assert_eq!(next(&bulk), [LISTENER]);
        bulk.accept();
        for _ in 0..3 {
            assert_eq!(next(&bulk), [AGAIN]);
            bulk.accept_again();
        }
        bulk.listen_to_listener(EventFlags::IN);
        assert!(next(&bulk).contains(&LISTENER), "a caller still waits");
    }
}
