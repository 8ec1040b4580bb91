//! The frames by which two ports agree on a connection, and who was asked for one. No I/O; the time
//! is an argument.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddrV4;

use base::time::{Duration, Instant};
use rustc_hash::FxBuildHasher;

use super::super::{Address, ENDPOINT_AT, NicId, Outgoing};

/// A number that cannot be predicted: a peer that has it has read a frame that was for it.
pub(super) type Nonce = u64;

/// The type of these frames; MX has none of this number.
pub(super) const ASK: u8 = 64;
const LENGTH: usize = 28;

/// How long to wait before a peer is asked again.
const ASK_AFTER: Duration = Duration::from_millis(1000);
/// Of two that ask one another at the same time, one does not answer if it has asked within this
/// time.
const RACE: Duration = Duration::from_millis(200);
/// The most peers that are asked. A later one is not until another has answered, or was long ago.
const MAX_PEERS: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Connect to this address, and say this nonce there.
    Call(SocketAddrV4, Nonce),
    /// One who was asked with the first nonce connects, and wants to be welcomed with the second.
    Coming(Nonce, Nonce),
}

impl Ask {
    /// Writes what follows the EtherType.
    ///
    /// ```text
    ///  0        1       2         3         4          8       12        20        28
    ///  type 64  0 call  endpoint  own       address    port 2  nonce     0         of the listener
    ///           1 coming          endpoint  0          0       nonce     welcome
    /// ```
    pub(super) fn write(self, own: Address, to: Address, frame: &mut [u8]) -> Outgoing {
        frame[..LENGTH].fill(0);
        frame[0] = ASK;
        frame[ENDPOINT_AT] = to.endpoint;
        frame[3] = own.endpoint;
        let nonces = match self {
            Self::Call(address, nonce) => {
                frame[4..8].copy_from_slice(&address.ip().octets());
                frame[8..10].copy_from_slice(&address.port().to_be_bytes());
                [nonce, 0]
            }
            Self::Coming(nonce, welcome) => {
                frame[1] = 1;
                [nonce, welcome]
            }
        };
        frame[12..20].copy_from_slice(&nonces[0].to_be_bytes());
        frame[20..28].copy_from_slice(&nonces[1].to_be_bytes());
        Outgoing::new(to.nic, to.endpoint, LENGTH)
    }

    /// Reads what follows the EtherType: the endpoint that sent it, and what it says.
    pub(super) fn read(frame: &[u8]) -> Option<(u8, Self)> {
        let frame = frame.first_chunk::<LENGTH>()?;
        let number = |at: usize| {
            frame[at..].first_chunk().map_or(0, |bytes: &[u8; 8]| u64::from_be_bytes(*bytes))
        };
        let &[_, kind, _, own, a, b, c, d, high, low, ..] = frame;
        let ask = match kind {
            0 => {
                let port = u16::from_be_bytes([high, low]);
                Self::Call(SocketAddrV4::new([a, b, c, d].into(), port), number(12))
            }
            1 => Self::Coming(number(12), number(20)),
            _ => return None,
        };
        Some((own, ask))
    }
}

pub(super) fn key_of(bytes: &[u8]) -> Option<Address> {
    let &[a, b, c, d, e, f, endpoint] = bytes.first_chunk()?;
    Some(Address { nic: NicId([a, b, c, d, e, f]), endpoint })
}

pub(super) struct Asked {
    peers: HashMap<Address, Question, FxBuildHasher>,
    /// Nonces are hashes with a secret key, so that others cannot predict them.
    secret: RandomState,
    count: u64,
}

struct Question {
    at: Instant,
    nonce: Nonce,
    welcome: Option<Nonce>,
}

impl Asked {
    pub(super) fn new() -> Self {
        Self { peers: HashMap::default(), secret: RandomState::new(), count: 0 }
    }

    pub(super) fn nonce(&mut self) -> Nonce {
        self.count += 1;
        self.secret.hash_one(self.count)
    }

    /// A connection to this peer is wanted: what to ask it with, if it is time to ask.
    pub(super) fn ask(&mut self, peer: Address, now: Instant) -> Option<Nonce> {
        let is_old = |question: &Question| now.since(question.at) >= ASK_AFTER;
        match self.peers.get(&peer) {
            Some(question) if !is_old(question) => return None,
            None if self.peers.len() >= MAX_PEERS => {
                self.peers.retain(|_, question| !is_old(question));
                if self.peers.len() >= MAX_PEERS {
                    return None;
                }
            }
            _ => {}
        }
        let nonce = self.nonce();
        self.peers.insert(peer, Question { at: now, nonce, welcome: None });
        Some(nonce)
    }

    /// Whether to leave a question unanswered, since the peer has one of ours to answer.
    pub(super) fn is_race(&self, own: Address, peer: Address, now: Instant) -> bool {
        let is_asked = |question: &Question| now.since(question.at) < RACE;
        own < peer && self.peers.get(&peer).is_some_and(is_asked)
    }

    pub(super) fn coming(&mut self, peer: Address, nonce: Nonce, welcome: Nonce) -> bool {
        let Some(question) = self.peers.get_mut(&peer) else { return false };
        let is_answer = question.nonce == nonce;
        if is_answer {
            question.welcome = Some(welcome);
        }
        is_answer
    }

    /// Somebody says to be this peer, and to have been asked so: what to welcome it with, if that
    /// is known already.
    pub(super) fn answer(&mut self, peer: Address, nonce: Nonce) -> Result<Option<Nonce>, ()> {
        let question = self.peers.get(&peer).filter(|question| question.nonce == nonce);
        let welcome = question.ok_or(())?.welcome;
        if welcome.is_some() {
            self.peers.remove(&peer);
        }
        Ok(welcome)
    }
}
