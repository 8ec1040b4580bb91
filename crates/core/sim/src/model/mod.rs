//! What must happen: a model of the semantics, independent of the engine.
//!
//! The model sees what applications do and the events they get, and nothing else. It does not
//! compute who gets which message, since that depends on when frames arrive; it checks that what
//! was reported is possible:
//!
//! - every request ends once, and not without a reason;
//! - a receive gets a message that fits it, that no other has, whole, or cut where that is reported
//!   to both ends, from the life of the sender that it is said to come from;
//! - receives are tried in the order in which they were posted, messages in the order in which they
//!   were sent: `order` checks that at the end.
//!
//! A message is known by its match information: the high bits hold its number, which no receive
//! looks at.

mod order;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base::prng::Prng;
use bytes::Bytes;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::status::{RequestError, Status};

/// The bits of the match information that are not the number of the message.
pub const TAG: u64 = 0xffff;
/// What receives are filled with before a message comes.
pub const BLANK: u8 = 0xee;
/// Bytes of the longest message.
pub(crate) const MAX_LENGTH: usize = 1 << 20;

/// One end of a connection: the host, its life, and its name for the other end.
pub type ConnectionSide = (usize, u32, PeerId);

/// A message that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Who sent it.
    pub from: ConnectionSide,
    /// The host that it was sent to.
    pub to: usize,
    /// Its match information.
    pub match_info: u64,
    /// Length of the message, in bytes.
    pub length: u64,
    /// Its send ends when it was received.
    pub waits: bool,
    /// Its send has ended.
    pub ended: Option<Result<(), RequestError>>,
    /// The receive that has it.
    pub taken: Option<usize>,
    /// Bytes that were delivered, once they were.
    pub delivered: Option<u64>,
}

/// What a receive or a probe asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The sender, or anybody.
    pub source: Option<PeerId>,
    /// Which messages it matches.
    pub matching: Match,
}

/// A receive that was posted.
#[derive(Clone, Debug)]
pub struct Posted {
    /// Host and life.
    pub by: (usize, u32),
    /// What it asks for.
    pub wanted: Wanted,
    /// Bytes that fit.
    pub capacity: u64,
    /// It has to get this message: a probe or a claim has found it.
    pub expects: Option<u64>,
    /// When it ended, and how.
    pub ended: Option<(u64, Result<(), RequestError>)>,
    /// The message that it got, and its sender.
    pub got: Option<(u64, PeerId)>,
    /// Its end is not reported.
    pub discarded: bool,
}

impl Posted {
    fn fits(&self, match_info: u64, source: PeerId) -> bool {
        let Wanted { source: wanted, matching } = self.wanted;
        matching.accepts(match_info & TAG) && wanted.is_none_or(|wanted| wanted == source)
    }
}

/// Where a message of this number is in the list. There is none of number 0.
pub(crate) const fn place(number: u64) -> usize {
    (number as usize).wrapping_sub(1)
}

/// Everything that was asked for, and what became of it.
#[derive(Debug)]
pub struct Model {
    /// Messages by number, from 1.
    pub sent: Vec<Sent>,
    /// Receives by number.
    pub posted: Vec<Posted>,
    /// Which side each receiving side hears.
    connections: BTreeMap<ConnectionSide, ConnectionSide>,
    /// Connections that have ended.
    pub lost: BTreeMap<ConnectionSide, RequestError>,
    /// Bytes of which all messages are made.
    bytes: Bytes,
    step: u64,
    /// What is wrong.
    pub faults: Vec<String>,
}

/// The bytes of which the messages of all models are made.
pub fn contents() -> Bytes {
    let mut random = Prng::new(1);
    let mut bytes = Vec::with_capacity(2 * MAX_LENGTH);
    while bytes.len() < 2 * MAX_LENGTH {
        bytes.extend(random.next_u64().to_ne_bytes());
    }
    bytes.into()
}

impl Model {
    /// A model of nothing yet; see [`contents`].
    pub const fn new(bytes: Bytes) -> Self {
        Self {
            sent: Vec::new(),
            posted: Vec::new(),
            connections: BTreeMap::new(),
            lost: BTreeMap::new(),
            bytes,
            step: 0,
            faults: Vec::new(),
        }
    }

    /// Says that something is wrong.
    pub fn fault(&mut self, what: String) {
        // The first one tells most.
        if self.faults.len() < 10 {
            self.faults.push(what);
        }
    }

    /// The contents of a message.
    pub fn message(&self, number: u64, length: u64) -> Bytes {
        let from = (number.wrapping_mul(0x9e37_79b9) as usize) % MAX_LENGTH;
        self.bytes.slice(from..from + length as usize)
    }

    /// A message is about to be sent: its number.
    pub fn send(
        &mut self,
        from: ConnectionSide,
        to: usize,
        tag: u64,
        length: u64,
        waits: bool,
    ) -> u64 {
        let number = self.sent.len() as u64 + 1;
        let match_info = number << 16 | tag;
        let (ended, taken, delivered) = (None, None, None);
        self.sent.push(Sent { from, to, match_info, length, waits, ended, taken, delivered });
        number
    }

    /// A receive is about to be posted: its number.
    pub fn post(
        &mut self,
        by: (usize, u32),
        wanted: Wanted,
        capacity: u64,
        expects: Option<u64>,
    ) -> usize {
        let (ended, got, discarded) = (None, None, false);
        self.posted.push(Posted { by, wanted, capacity, expects, ended, got, discarded });
        self.posted.len() - 1
    }

    /// The number of the message with this match information.
    pub const fn number(match_info: u64) -> u64 {
        match_info >> 16
    }

    /// A send has ended.
    pub(crate) fn send_ended(&mut self, number: u64, status: &Status, is_own: bool) {
        self.step += 1;
        let Some(message) = self.sent.get_mut(place(number)) else { return };
        let before = message.ended.replace(status.result);
        let message = message.clone();
        if before.is_some() {
            self.fault(format!("send {number} ended twice: {status:?}"));
        }
        if (status.length, status.match_info) != (message.length, message.match_info) {
            self.fault(format!("send {number} of {message:?} ended as another: {status:?}"));
        }
        let is_delivered = message.delivered == Some(status.transferred);
        let good = match status.result {
            Ok(()) if message.waits => is_delivered && status.transferred == message.length,
            Ok(()) => status.transferred == message.length,
            Err(RequestError::Truncated) => is_delivered && status.transferred < message.length,
            Err(RequestError::Aborted) => is_own,
            Err(error) => !matches!(
                error,
                RequestError::Cancelled
                    | RequestError::Protocol
                    | RequestError::BadKey
                    | RequestError::BadVersion
            ),
        };
        if !good {
            self.fault(format!("send {number} of {message:?} must not end as {status:?}"));
        }
    }

    /// A receive has ended.
    pub(crate) fn receive_ended(
        &mut self,
        receive: usize,
        status: &Status,
        data: &[u8],
        is_own: bool,
    ) {
        self.step += 1;
        let step = self.step;
        let Some(posted) = self.posted.get_mut(receive) else { return };
        let before = posted.ended.replace((step, status.result));
        let posted = posted.clone();
        if before.is_some() || posted.discarded {
            self.fault(format!("receive {receive} ended twice: {posted:?}"));
        }
        let number = Self::number(status.match_info);
        if number == 0 {
            let good = match status.result {
                Ok(()) | Err(RequestError::Truncated | RequestError::Protocol) => false,
                Err(RequestError::Aborted) => is_own,
                _ => true,
            };
            if !good {
                self.fault(format!("receive {receive} must not end as {status:?}"));
            }
            return;
        }
        self.take(receive, number, status.peer);
        let Some(message) = self.sent.get(place(number)).cloned() else { return };
        let whole = matches!(status.result, Ok(()) | Err(RequestError::Truncated));
        let fits = message.length.min(posted.capacity);
        let result = if fits < message.length { Err(RequestError::Truncated) } else { Ok(()) };
        if status.length != message.length || status.match_info != message.match_info {
            self.fault(format!("receive {receive} of {message:?} tells {status:?}"));
        }
        if !whole {
            return;
        }
        if (status.result, status.transferred) != (result, fits) {
            self.fault(format!("receive {receive} of {message:?} into {fits} tells {status:?}"));
        }
        let expected = self.message(number, message.length);
        let (got, rest) = data.split_at(fits.min(data.len() as u64) as usize);
        let is_blank = |byte: Option<&u8>| byte.is_none_or(|byte| *byte == BLANK);
        if *got != expected[..fits as usize] || !is_blank(rest.first()) || !is_blank(rest.last()) {
            self.fault(format!("receive {receive} of {message:?} got other bytes"));
        }
        if let Some(message) = self.sent.get_mut(place(number))
            && message.delivered.replace(fits).is_some()
        {
            self.fault(format!("message {number} was delivered twice"));
        }
    }

    /// A receive has got this message, from this peer.
    pub fn take(&mut self, receive: usize, number: u64, peer: Option<PeerId>) {
        let posted = self.posted[receive].clone();
        let Some(message) = self.sent.get_mut(place(number)) else {
            return self.fault(format!("receive {receive} got message {number} that never was"));
        };
        let before = message.taken.replace(receive);
        let message = message.clone();
        let Some(peer) = peer else {
            return self.fault(format!("receive {receive} got message {number} from no peer"));
        };
        self.posted[receive].got = Some((number, peer));
        if before.is_some_and(|before| before != receive) {
            self.fault(format!("message {number} went to {before:?} and {receive}"));
        }
        if !posted.fits(message.match_info, peer) || message.to != posted.by.0 {
            self.fault(format!("receive {posted:?} got {message:?} from {peer:?}"));
        }
        if posted.expects.is_some_and(|expected| expected != number) {
            self.fault(format!("receive {receive} got {number}, not {:?}", posted.expects));
        }
        let side = (posted.by.0, posted.by.1, peer);
        let from = *self.connections.entry(side).or_insert(message.from);
        let other = self.connections.iter().any(|(at, of)| *of == message.from && *at != side);
        if from != message.from || other {
            self.fault(format!("{message:?} came by the connection of {from:?} at {side:?}"));
        }
    }

    /// A claimed message was discarded, into a place of so many bytes.
    pub fn discard(&mut self, receive: usize, number: u64, room: u64) {
        self.posted[receive].discarded = true;
        if let Some(message) = self.sent.get_mut(place(number)) {
            message.delivered = Some(message.length.min(room));
        }
    }

    /// The sides that have received something.
    pub fn sides(&self) -> Vec<ConnectionSide> {
        self.connections.keys().copied().collect()
    }
}
