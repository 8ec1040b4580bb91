//! Which peers have a lane, and when to ask. No I/O; the time is an argument.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddrV4;

use base::time::{Duration, Instant};
use rustc_hash::FxBuildHasher;

use super::NicId;

/// A peer: its NIC and its endpoint.
pub(super) type Key = (NicId, u8);

/// How long a lane is used without a sign that it is still there.
const OPEN_FOR: Duration = Duration::from_millis(1000);
/// How long after the last sign, or the last probe, it is probed.
const PROBE_AFTER: Duration = Duration::from_millis(250);
/// How long to wait before a peer is asked again.
const ASK_AFTER: Duration = Duration::from_millis(1000);
/// The most peers that are known; who comes later has no lane until others are forgotten.
const MOST: usize = 4096;

/// All peers that frames of large messages were sent to.
pub(super) struct Book {
    peers: HashMap<Key, Way, FxBuildHasher>,
    /// Nonces are hashes that nobody else can compute.
    secret: RandomState,
    asked: u64,
}

struct Way {
    nonce: u64,
    to: Option<SocketAddrV4>,
    open_until: Instant,
    /// When to probe if it is open, and to ask if not.
    next: Instant,
}

/// Where a frame goes, and what else there is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    /// The lane, if it is open.
    pub(super) to: Option<SocketAddrV4>,
    /// Ask the peer for a lane, with this nonce.
    pub(super) asks: Option<u64>,
    /// Probe with this nonce whether it is still there.
    pub(super) probes: Option<u64>,
}

impl Book {
    pub(super) fn new() -> Self {
        Self { peers: HashMap::default(), secret: RandomState::new(), asked: 0 }
    }

    /// Where the next frame for a peer goes.
    pub(super) fn route(&mut self, peer: Key, now: Instant) -> Route {
        if !self.peers.contains_key(&peer) {
            if self.peers.len() >= MOST {
                self.peers.retain(|_, way| now < way.open_until);
            }
            if self.peers.len() >= MOST {
                return Route::default();
            }
            let way = Way { nonce: 0, to: None, open_until: Instant::ZERO, next: now };
            self.peers.insert(peer, way);
        }
        let Some(way) = self.peers.get_mut(&peer) else { return Route::default() };
        let (is_open, is_time) = (now < way.open_until, now >= way.next);
        if is_open {
            if is_time {
                way.next = now + PROBE_AFTER;
            }
            return Route { to: way.to, asks: None, probes: is_time.then_some(way.nonce) };
        }
        if is_time {
            self.asked += 1;
            let nonce = self.secret.hash_one(self.asked);
            (way.nonce, way.to, way.next) = (nonce, None, now + ASK_AFTER);
        }
        Route { to: None, asks: is_time.then_some(way.nonce), probes: None }
    }

    /// A peer, asked so, is to be reached there; whether to probe that.
    pub(super) fn invited(&mut self, peer: Key, nonce: u64, from: SocketAddrV4) -> bool {
        let Some(way) = self.peers.get_mut(&peer) else { return false };
        if way.nonce != nonce || way.to.is_some() {
            return false;
        }
        way.to = Some(from);
        true
    }

    /// A peer has answered a probe.
    pub(super) fn opened(&mut self, peer: Key, (nonce, from): (u64, SocketAddrV4), now: Instant) {
        if let Some(way) = self.peers.get_mut(&peer)
            && (way.nonce, way.to) == (nonce, Some(from))
        {
            (way.open_until, way.next) = (now + OPEN_FOR, now + PROBE_AFTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Key = (NicId([2, 0, 0, 0, 0, 1]), 7);
    const THERE: SocketAddrV4 = SocketAddrV4::new(std::net::Ipv4Addr::new(10, 0, 0, 1), 99);

    fn at(millis: u64) -> Instant {
        Instant::from_micros(millis * 1000)
    }

    /// A book in which the lane was opened at 0.
    fn open() -> (Book, u64) {
        let mut book = Book::new();
        let first = book.route(PEER, at(0));
        let nonce = first.asks.expect("a question");
        assert_eq!(first, Route { asks: Some(nonce), ..Route::default() });
        assert!(book.invited(PEER, nonce, THERE));
        assert_eq!(book.route(PEER, at(0)).to, None, "it was not probed");
        book.opened(PEER, (nonce, THERE), at(0));
        (book, nonce)
    }

    #[test]
    fn lane_is_used_when_a_probe_was_answered_and_while_probes_are() {
        let (mut book, nonce) = open();
        let quiet = Route { to: Some(THERE), ..Route::default() };
        let probing = Route { probes: Some(nonce), ..quiet };
        assert_eq!(book.route(PEER, at(249)), quiet);
        assert_eq!(book.route(PEER, at(250)), probing);
        assert_eq!(book.route(PEER, at(251)), quiet, "one probe at a time");
        book.opened(PEER, (nonce, THERE), at(900));
        assert_eq!(book.route(PEER, at(1899)), probing);
        assert_eq!(book.route(PEER, at(1900)).to, None, "nobody has answered");
    }

    #[test]
    fn peer_without_a_lane_is_asked_once_a_second() {
        let mut book = Book::new();
        let asks = |book: &mut Book, now| book.route(PEER, at(now)).asks;
        let first = asks(&mut book, 0).expect("a question");
        assert_eq!(asks(&mut book, 999), None);
        let second = asks(&mut book, 1000).expect("another");
        assert_ne!(second, first);
        assert!(!book.invited(PEER, first, THERE), "an old question was answered");
    }

    #[test]
    fn strangers_open_nothing() {
        let mut book = Book::new();
        assert!(!book.invited(PEER, 0, THERE), "nobody was asked");
        let nonce = book.route(PEER, at(0)).asks.expect("a question");
        assert!(!book.invited(PEER, nonce ^ 1, THERE));
        book.opened(PEER, (nonce, THERE), at(0));
        assert_eq!(book.route(PEER, at(1)).to, None);
        assert!(book.invited(PEER, nonce, THERE));
        let elsewhere = SocketAddrV4::new([10, 0, 0, 2].into(), 99);
        assert!(!book.invited(PEER, nonce, elsewhere), "the first counts");
        book.opened(PEER, (nonce, elsewhere), at(0));
        assert_eq!(book.route(PEER, at(1)).to, None);
    }

    #[test]
    fn no_more_peers_are_kept_than_there_is_room_for() {
        let mut book = Book::new();
        for number in 0..10_000_u32 {
            let [_, _, a, b] = number.to_be_bytes();
            book.route((NicId([2, 0, 0, 0, a, b]), 0), at(0));
            assert!(book.peers.len() <= MOST);
        }
    }
}
