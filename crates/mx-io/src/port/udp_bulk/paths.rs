//! Which peers can be reached over UDP, and when to ask. No I/O; the time is an argument.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddrV4;

use base::time::{Duration, Instant};
use rustc_hash::FxBuildHasher;

use super::NicId;

/// A peer: its NIC and its endpoint.
pub(super) type Key = (NicId, u8);

/// How long a path is used without a sign that it is still open.
const OPEN_FOR: Duration = Duration::from_millis(1000);
/// How long after the last sign, or the last probe, it is probed.
const PROBE_AFTER: Duration = Duration::from_millis(250);
/// How long to wait before a peer is asked again.
const ASK_AFTER: Duration = Duration::from_millis(1000);
/// The most peers that are known. A later one has no path until another is removed.
const MAX_PEERS: usize = 4096;

/// All peers that frames of large messages were sent to.
pub(super) struct Paths {
    peers: HashMap<Key, Path, FxBuildHasher>,
    /// Nonces are hashes with a secret key, so that others cannot predict them.
    secret: RandomState,
    asked: u64,
}

struct Path {
    nonce: u64,
    to: Option<SocketAddrV4>,
    open_until: Instant,
    /// When to probe if it is open, and to ask if not.
    next: Instant,
}

/// Where a frame goes, and what else there is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    /// The address of the path, if it is open.
    pub(super) to: Option<SocketAddrV4>,
    /// Ask the peer for a path, with this nonce.
    pub(super) asks: Option<u64>,
    /// Probe with this nonce whether the path is still open.
    pub(super) probes: Option<u64>,
}

impl Paths {
    pub(super) fn new() -> Self {
        Self { peers: HashMap::default(), secret: RandomState::new(), asked: 0 }
    }

    /// The route of the next frame for a peer.
    pub(super) fn route(&mut self, peer: Key, now: Instant) -> Route {
        if !self.peers.contains_key(&peer) {
            if self.peers.len() >= MAX_PEERS {
                self.peers.retain(|_, path| now < path.open_until);
            }
            if self.peers.len() >= MAX_PEERS {
                return Route::default();
            }
            let path = Path { nonce: 0, to: None, open_until: Instant::ZERO, next: now };
            self.peers.insert(peer, path);
        }
        let Some(path) = self.peers.get_mut(&peer) else { return Route::default() };
        let (is_open, is_time) = (now < path.open_until, now >= path.next);
        if is_open {
            if is_time {
                path.next = now + PROBE_AFTER;
            }
            return Route { to: path.to, asks: None, probes: is_time.then_some(path.nonce) };
        }
        if is_time {
            self.asked += 1;
            let nonce = self.secret.hash_one(self.asked);
            (path.nonce, path.to, path.next) = (nonce, None, now + ASK_AFTER);
        }
        Route { to: None, asks: is_time.then_some(path.nonce), probes: None }
    }

    /// A peer has answered a question with its UDP address; whether to probe that.
    pub(super) fn on_invite(&mut self, peer: Key, nonce: u64, from: SocketAddrV4) -> bool {
        let Some(path) = self.peers.get_mut(&peer) else { return false };
        if path.nonce != nonce || path.to.is_some() {
            return false;
        }
        path.to = Some(from);
        true
    }

    /// A peer has answered a probe.
    pub(super) fn on_open(&mut self, now: Instant, peer: Key, nonce: u64, from: SocketAddrV4) {
        if let Some(path) = self.peers.get_mut(&peer)
            && (path.nonce, path.to) == (nonce, Some(from))
        {
            (path.open_until, path.next) = (now + OPEN_FOR, now + PROBE_AFTER);
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

    /// Paths of which one was opened at 0.
    fn open() -> (Paths, u64) {
        let mut paths = Paths::new();
        let first = paths.route(PEER, at(0));
        let nonce = first.asks.expect("a question");
        assert_eq!(first, Route { asks: Some(nonce), ..Route::default() });
        assert!(paths.on_invite(PEER, nonce, THERE));
        assert_eq!(paths.route(PEER, at(0)).to, None, "it was not probed");
        paths.on_open(at(0), PEER, nonce, THERE);
        (paths, nonce)
    }

    #[test]
    fn path_is_used_when_a_probe_was_answered_and_while_probes_are() {
        let (mut paths, nonce) = open();
        let quiet = Route { to: Some(THERE), ..Route::default() };
        let probing = Route { probes: Some(nonce), ..quiet };
        assert_eq!(paths.route(PEER, at(249)), quiet);
        assert_eq!(paths.route(PEER, at(250)), probing);
        assert_eq!(paths.route(PEER, at(251)), quiet, "one probe at a time");
        paths.on_open(at(900), PEER, nonce, THERE);
        assert_eq!(paths.route(PEER, at(1899)), probing);
        assert_eq!(paths.route(PEER, at(1900)).to, None, "nobody has answered");
    }

    #[test]
    fn peer_without_a_path_is_asked_once_a_second() {
        let mut paths = Paths::new();
        let asks = |paths: &mut Paths, now| paths.route(PEER, at(now)).asks;
        let first = asks(&mut paths, 0).expect("a question");
        assert_eq!(asks(&mut paths, 999), None);
        let second = asks(&mut paths, 1000).expect("another");
        assert_ne!(second, first);
        assert!(!paths.on_invite(PEER, first, THERE), "an old question was answered");
    }

    #[test]
    fn strangers_open_nothing() {
        let mut paths = Paths::new();
        assert!(!paths.on_invite(PEER, 0, THERE), "nobody was asked");
        let nonce = paths.route(PEER, at(0)).asks.expect("a question");
        assert!(!paths.on_invite(PEER, nonce ^ 1, THERE));
        paths.on_open(at(0), PEER, nonce, THERE);
        assert_eq!(paths.route(PEER, at(1)).to, None);
        assert!(paths.on_invite(PEER, nonce, THERE));
        let elsewhere = SocketAddrV4::new([10, 0, 0, 2].into(), 99);
        assert!(!paths.on_invite(PEER, nonce, elsewhere), "the first counts");
        paths.on_open(at(0), PEER, nonce, elsewhere);
        assert_eq!(paths.route(PEER, at(1)).to, None);
    }

    #[test]
    fn no_more_peers_are_kept_than_there_is_room_for() {
        let mut paths = Paths::new();
        for number in 0..10_000_u32 {
            let [_, _, a, b] = number.to_be_bytes();
            paths.route((NicId([2, 0, 0, 0, a, b]), 0), at(0));
            assert!(paths.peers.len() <= MAX_PEERS);
        }
    }
}
