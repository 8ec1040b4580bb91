//! An endpoint: a state machine that is told what happens, and asked what to do.
//!
//! # The contract
//!
//! The owner, a thread with a port or a simulator,
//!
//! - passes `now` to every call that takes it; it never goes back;
//! - hands every frame that arrives to [`Endpoint::handle_frame`];
//! - after any call, asks [`Endpoint::transmit`] for frames until there are none, or until its port
//!   is full; frames go out in that order;
//! - takes what [`Endpoint::poll_event`] has to tell;
//! - calls [`Endpoint::handle_timeout`] at [`Endpoint::deadline`], which any call may change. A late call
//!   delays resends and acknowledgements, and breaks nothing.
//!
//! Nothing else is needed for progress. In particular, no request has to be asked about.

mod close;
mod connect;
mod dump;
mod eager;
mod head;
mod large;
mod look;
mod receive;
mod requests;
mod timers;
mod transmit;

pub use requests::Found;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use base::prng::Prng;
use base::time::Instant;
use slotmap::SlotMap;

use crate::address::{Address, NicId};
use crate::buffers::{Sink, Source};
use crate::config::{Config, ConfigError};
use crate::counters::Counters;
use crate::ids::{MessageId, PeerId, ReceiveId, SendId};
use crate::large::{Job, Pull, Region};
use crate::matching::Matching;
use crate::peer::{Congestion, Peer, Segment};
use crate::seq::Seq;
use crate::status::{Code, Event};
use crate::wire::{ConnectStatus, Header, NackReason};
use head::Head;

/// A request to send.
#[derive(Debug)]
struct Sending<S> {
    source: S,
    peer: PeerId,
    match_info: u64,
    total: u64,
    context: u64,
    /// It ends when the message was received, not when it was accepted.
    synchronous: bool,
    /// Its end was reported.
    is_complete: bool,
    /// Bytes that have been made into eager frames.
    begun: u32,
    /// All of it has.
    is_out: bool,
    /// Frames that are not acknowledged.
    unacked: u32,
}

/// A request to receive.
#[derive(Debug)]
struct Receiving<R> {
    sink: R,
    match_info: u64,
    context: u64,
    /// Nobody wants to hear how it ends.
    quiet: bool,
}

/// A message that nobody has received.
#[derive(Debug)]
struct Message {
    source: PeerId,
    match_info: u64,
    total: u64,
    contents: Contents,
}

#[derive(Debug)]
enum Contents {
    /// An eager message, and how many bytes of it are there.
    Eager(Vec<u8>, u32),
    /// One that has to be pulled.
    Announced { region: u32, head: Head },
    /// One from this endpoint to itself.
    Local(SendId),
}

/// A frame to somebody who is no peer.
#[derive(Clone, Copy, Debug)]
enum Stray {
    Answer { to: Address, token: u32, status: ConnectStatus },
    Nack { to: Address, token: u32, reason: NackReason },
    LastAck { to: Address, header: Header },
}

/// What an endpoint keeps, for a dump of the state and for tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Bytes of eager messages that nobody has received.
    pub unexpected_bytes: u64,
    /// Bytes that peers have used of what they were permitted, and have not been given back.
    pub charged_bytes: u64,
    /// Bytes that are kept for such messages, used or not.
    pub reserved_bytes: u64,
    /// Bytes of frames that came early.
    pub early_bytes: u64,
    /// Messages that wait for a receive, of any kind.
    pub waiting: u32,
    /// Receives that wait for a message.
    pub posted: usize,
    /// Frames of large messages that were asked for and are under way.
    pub pulling: u32,
    /// Pull requests of peers that are not answered yet.
    pub jobs: usize,
    /// Sends that are not acknowledged, or not even told.
    pub sends: usize,
}

/// More answers to strangers are not kept.
const MOST_STRAYS: usize = 64;
/// So many lost peers are remembered, to say why they were lost.
const MOST_LOST: usize = 256;
/// The window of all pulls together at first, in frames.
const FIRST_PULL_WINDOW: u32 = 128;

/// An endpoint. Messages to send are of type `S`, places for messages of type `R`.
#[derive(Debug)]
pub struct Endpoint<S, R> {
    config: Config,
    address: Address,
    /// This life of the endpoint.
    instance: u64,
    random: Prng,
    counters: Counters,

    peers: SlotMap<PeerId, Peer>,
    by_address: BTreeMap<Address, PeerId>,
    /// Those that may replace a peer of the same address, once they show that they are alive.
    candidates: BTreeMap<Address, PeerId>,
    lost: VecDeque<(PeerId, Address, Code)>,
    /// Bytes of unexpected messages that peers were promised.
    reserved: u64,
    early_bytes: u64,

    sends: SlotMap<SendId, Sending<S>>,
    receives: SlotMap<ReceiveId, Receiving<R>>,
    messages: SlotMap<MessageId, Message>,
    matching: Matching,
    /// Peers were told to begin no new messages.
    full: bool,

    regions: BTreeMap<u32, Region>,
    next_region: u32,
    jobs: VecDeque<Job>,
    pulls: BTreeMap<u32, Pull>,
    next_pull: u32,
    /// The number of the first frame to each peer, if it is not to be random.
    first_seq: Option<Seq>,
    /// Pulls that want to ask for more.
    pull_queue: VecDeque<u32>,
    /// Frames that were asked for and have not come.
    pulling: u32,
    pull_congestion: Congestion,
    /// Pull requests sent.
    requests: u64,

    /// Peers to which there may be something to send.
    ready: VecDeque<PeerId>,
    strays: VecDeque<Stray>,
    turn: u8,
    timers: BTreeSet<(Instant, PeerId)>,
    events: VecDeque<Event<R>>,
    /// What an acknowledgement has done with; kept for its memory.
    done: Vec<Segment>,
    closing: bool,
}

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// An endpoint with this address. `seed` decides on its tokens and numbers: two endpoints, and
    /// two lives of one, must not have the same.
    ///
    /// # Errors
    /// If a setting is out of its range.
    pub fn new(config: Config, address: Address, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random = Prng::new(seed);
        Ok(Self {
            config,
            address,
            instance: random.next_u64(),
            counters: Counters::default(),
            peers: SlotMap::with_key(),
            by_address: BTreeMap::new(),
            candidates: BTreeMap::new(),
            lost: VecDeque::new(),
            reserved: 0,
            early_bytes: 0,
            sends: SlotMap::with_key(),
            receives: SlotMap::with_key(),
            messages: SlotMap::with_key(),
            matching: Matching::new(config.context),
            full: false,
            regions: BTreeMap::new(),
            next_region: random.next_u64() as u32,
            jobs: VecDeque::new(),
            pulls: BTreeMap::new(),
            next_pull: random.next_u64() as u32,
            first_seq: None,
            pull_queue: VecDeque::new(),
            pulling: 0,
            pull_congestion: Congestion::new(
                FIRST_PULL_WINDOW.min(config.pull_window),
                crate::config::BLOCK_FRAMES,
                config.pull_window,
            ),
            requests: 0,
            ready: VecDeque::new(),
            strays: VecDeque::new(),
            turn: 0,
            timers: BTreeSet::new(),
            events: VecDeque::new(),
            done: Vec::new(),
            closing: false,
            random,
        })
    }

    /// What is counted modulo 2^32 from a random number on is counted from this one on. Tests call
    /// it, before anything else, to see the end of the numbers.
    #[doc(hidden)]
    pub fn number_from(&mut self, number: u32) {
        (self.next_region, self.next_pull) = (number, number);
        self.first_seq = Some(Seq(number));
    }

    /// Where this endpoint is.
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Its settings.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What it has counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What it keeps now.
    pub fn usage(&self) -> Usage {
        let eager = self.messages.values().map(|message| match &message.contents {
            Contents::Eager(data, _) => data.len() as u64,
            _ => 0,
        });
        Usage {
            unexpected_bytes: eager.sum(),
            charged_bytes: self.peers.values().map(|peer| u64::from(peer.unexpected)).sum(),
            reserved_bytes: self.reserved,
            early_bytes: self.early_bytes,
            waiting: self.matching.waiting(),
            posted: self.matching.posted(),
            pulling: self.pulling,
            jobs: self.jobs.len(),
            sends: self.sends.len(),
        }
    }

    /// The next thing that it has to tell.
    pub fn poll_event(&mut self) -> Option<Event<R>> {
        self.events.pop_front()
    }

    /// Where this peer is, or was: of lost peers only some are remembered.
    pub fn address_of(&self, peer: PeerId) -> Option<Address> {
        let lost = || self.lost.iter().find(|(id, ..)| *id == peer).map(|(_, address, _)| *address);
        self.peers.get(peer).map(|peer| peer.address).or_else(lost)
    }

    /// The peers there are, in no particular order.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.by_address.values().copied()
    }

    /// Whether this peer is one still.
    pub fn has_peer(&self, peer: PeerId) -> bool {
        self.peers.contains_key(peer)
    }

    /// The peer at this address, if there is one.
    pub fn peer_at(&self, address: Address) -> Option<PeerId> {
        self.by_address.get(&address).copied()
    }

    /// A number that the application gave to a peer; 0 before it gave one
    /// (`mx_get_endpoint_addr_context`).
    pub fn peer_context(&self, peer: PeerId) -> Option<u64> {
        self.peers.get(peer).map(|peer| peer.context)
    }

    /// Gives a number to a peer; false if it is lost (`mx_set_endpoint_addr_context`).
    pub fn set_peer_context(&mut self, peer: PeerId, context: u64) -> bool {
        self.peers.get_mut(peer).map(|peer| peer.context = context).is_some()
    }

    fn is_self(&self, nic: NicId, endpoint: u8) -> bool {
        self.address == Address { nic, endpoint }
    }

    /// Why this peer is none.
    fn why_lost(&self, peer: PeerId) -> Code {
        let lost = self.lost.iter().find(|(id, ..)| *id == peer);
        lost.map_or(Code::Unreachable, |(.., code)| *code)
    }

    /// Puts a peer into the queue of those that may have something to send.
    fn wake(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(id)
            && !peer.is_ready
        {
            peer.is_ready = true;
            self.ready.push_back(id);
        }
    }

    /// A new peer. It may send so many bytes unasked as the memory for all peers allows.
    fn add_peer(&mut self, address: Address, link: crate::peer::Link) -> PeerId {
        let token = self.random.next_u64() as u32;
        let random = Seq(self.random.next_u64() as u32);
        let first = self.first_seq.unwrap_or(random);
        let mut peer = Peer::new(address, link, token, first, &self.config);
        let left = self.config.unexpected_bytes.saturating_sub(self.reserved);
        peer.share = left.min(self.config.peer_credit.into()) as u32;
        peer.granted = Seq(peer.share);
        peer.granted_sent = peer.granted;
        self.reserved += u64::from(peer.share);
        self.peers.insert(peer)
    }

    fn stray(&mut self, stray: Stray) {
        if self.strays.len() < MOST_STRAYS {
            self.strays.push_back(stray);
        } else {
            self.counters.drop(crate::counters::Drop::TooManyStrays);
        }
    }
}
