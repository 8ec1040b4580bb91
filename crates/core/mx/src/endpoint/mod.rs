//! An endpoint: a state machine with inputs (calls) and outputs (frames and events).
//!
//! # The contract
//!
//! The owner, a thread with a port or a simulator,
//!
//! - passes `now` to every call that takes it; it never goes back;
//! - hands every frame that arrives to [`Endpoint::handle_frame`];
//! - after any call, asks [`Endpoint::transmit`] for frames until there are none, or until its port
//!   is full; frames go out in that order, and the last ones bear the marks of those before;
//! - tells by [`Endpoint::set_bulk_path`] if there is another path to a peer, for long frames,
//!   whose data it may take from [`Endpoint::data`]; and closes those that
//!   [`Endpoint::poll_lost_path`] names;
//! - reads what [`Endpoint::next_read`] names, if it has passed on where it lies;
//! - takes events from [`Endpoint::poll_event`] until there are none;
//! - calls [`Endpoint::handle_timeout`] at [`Endpoint::deadline`], which any call may change. A
//!   late call delays resends and acknowledgements, and breaks nothing.
//!
//! Two threads may drive one endpoint, such as a program and the interrupt handler of its host:
//! they take turns with a lock, and each puts its frames on the wire without it. So frames may
//! leave in another order than [`Endpoint::transmit`] has written them. A frame that two others of
//! its kind overtake is not taken for lost; one that more overtake may be sent, or asked for,
//! twice.
//!
//! Nothing else is needed for progress. In particular, no request has to be asked about.

mod bulk;
mod close;
mod connect;
mod dump;
mod eager;
mod guests;
mod large;
mod look;
mod marks;
mod orphans;
mod peers;
mod reads;
mod receive;
mod replies;
mod requests;
mod room;
mod timers;
mod transmit;

pub use reads::Read;
pub use requests::ProbedMessage;

use alloc::boxed::Box;
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
use crate::large::{Pulls, Regions};
use crate::matching::Matching;
use crate::outgoing::{BulkState, Data, Reference};
use crate::peer::{ConnectionState, Peer, Segment};
use crate::seq::Seq;
use crate::status::Event;
use peers::{Orphans, Peers};
use reads::{Head, Reads};
use timers::{Schedule, Stray};

#[derive(Debug)]
struct Sending<S> {
    source: S,
    peer: PeerId,
    match_info: u64,
    total: u64,
    context: u64,
    /// It ends when the message was received, not when it was accepted.
    synchronous: bool,
    is_complete: bool,
    /// Bytes that have been made into eager frames.
    begun: u32,
    /// All of it has.
    is_out: bool,
    /// Frames that are not acknowledged.
    unacked: u32,
}

#[derive(Debug)]
struct Receiving<R> {
    sink: R,
    match_info: u64,
    context: u64,
    quiet: bool,
}

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
    /// One that has to be pulled: an announcement, in little room, since many may wait.
    Announced { region: u32, head: Head, reference: Option<Box<Reference>> },
    /// One from this endpoint to itself.
    Local(SendId),
}

const _: () = assert!(size_of::<Message>() <= 64, "there may be a million of them");

/// What an endpoint keeps, for a dump of the state and for tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Bytes of eager messages that no receive has taken.
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
    /// Sends that are not acknowledged, or not even complete.
    pub sends: usize,
}

/// More answers to strangers are not kept.
const MAX_STRAYS: usize = 64;

/// An endpoint. Messages to send are of type `S`, places for messages of type `R`.
#[derive(Debug)]
pub struct Endpoint<S, R> {
    config: Config,
    address: Address,
    /// This life of the endpoint.
    instance: u64,
    random: Prng,
    counters: Counters,

    peers: Peers,
    /// The paths that there are, also to those who are no peers now.
    bulk_paths: BTreeMap<Address, BulkState>,
    lost_paths: Vec<Address>,
    /// The data of the latest frame, if they were not written.
    data: Option<Data>,
    /// The number of the first frame to each peer, if it is not to be random.
    first_seq: Option<Seq>,
    reserved_bytes: u64,
    early_bytes: u64,

    sends: SlotMap<SendId, Sending<S>>,
    /// Eager messages in memory that is lent, in the order in which they left. Some may have ended.
    lent: VecDeque<SendId>,
    receives: SlotMap<ReceiveId, Receiving<R>>,
    messages: SlotMap<MessageId, Message>,
    /// Those that were claimed, and their peers.
    claimed: BTreeSet<(PeerId, MessageId)>,
    orphans: Orphans,
    matching: Matching,

    regions: Regions,
    pulls: Pulls,
    reads: Reads,

    schedule: Schedule,
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
            peers: Peers::default(),
            bulk_paths: BTreeMap::new(),
            lost_paths: Vec::new(),
            data: None,
            first_seq: None,
            reserved_bytes: 0,
            early_bytes: 0,
            sends: SlotMap::with_key(),
            lent: VecDeque::new(),
            receives: SlotMap::with_key(),
            messages: SlotMap::with_key(),
            claimed: BTreeSet::new(),
            orphans: Orphans::default(),
            matching: Matching::new(config.context),
            regions: Regions::new(random.next_u64() as u32),
            pulls: Pulls::new(random.next_u64() as u32, &config),
            reads: Reads::default(),
            schedule: Schedule::default(),
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
        self.regions = Regions::new(number);
        self.pulls = Pulls::new(number, &self.config);
        self.first_seq = Some(Seq(number));
    }

    /// Where this endpoint is.
    pub const fn address(&self) -> Address {
        self.address
    }

    /// The settings that it was opened with.
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
            charged_bytes: self.peers.slots.values().map(|peer| u64::from(peer.unexpected)).sum(),
            reserved_bytes: self.reserved_bytes,
            early_bytes: self.early_bytes,
            waiting: self.matching.waiting.len(),
            posted: self.matching.posted(),
            pulling: self.pulls.in_flight,
            jobs: self.peers.slots.values().map(|peer| peer.jobs.len() + peer.parked.len()).sum(),
            sends: self.sends(),
        }
    }

    /// How many sends are not acknowledged, or not even complete: their messages are kept.
    pub fn sends(&self) -> usize {
        self.sends.len()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event<R>> {
        self.events.pop_front()
    }

    /// Where this peer is, or was: of lost peers only some are remembered.
    pub fn address_of(&self, peer: PeerId) -> Option<Address> {
        self.peers.address_of(peer)
    }

    /// The peers there are, in no particular order.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.peers.addresses().map(|(_, id)| id)
    }

    /// Whether this peer is one still.
    pub fn has_peer(&self, peer: PeerId) -> bool {
        self.peers.get(peer).is_some()
    }

    /// The peer at this address, if there is one.
    pub fn peer_at(&self, address: Address) -> Option<PeerId> {
        self.peers.at(address)
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

    /// Puts a peer into the queue of those that may have something to send.
    fn wake(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(id)
            && !peer.is_ready
        {
            peer.is_ready = true;
            self.schedule.ready.push_back(id);
        }
    }

    /// As [`wake`](Self::wake), of a peer whose timer may have changed, too.
    fn act(&mut self, now: Instant, id: PeerId) {
        self.wake(id);
        self.timer_changed(now, id);
    }

    /// A new peer. It may send so many bytes unasked as the memory for all peers allows; a stranger
    /// a few.
    fn add_peer(&mut self, address: Address, link: ConnectionState) -> PeerId {
        let token = self.random.next_u64() as u32;
        let random = Seq(self.random.next_u64() as u32);
        let first = self.first_seq.unwrap_or(random);
        let mut peer = Peer::new(address, link, token, first, &self.config);
        peer.bulk = self.bulk_paths.get(&address).copied().unwrap_or_default();
        let most = if link == ConnectionState::Answered { 0 } else { self.share_of_bytes() };
        peer.share = most.max(self.least_bytes());
        peer.granted = Seq(peer.share);
        peer.granted_sent = peer.granted;
        self.reserved_bytes += u64::from(peer.share);
        self.peers.slots.insert(peer)
    }

    fn stray(&mut self, stray: Stray) {
        // A peer that closes gets its last word; there are no more of these than peers.
        let is_last = matches!(stray, Stray::LastAck { .. });
        if is_last || self.schedule.strays.len() < MAX_STRAYS {
            self.schedule.strays.push_back(stray);
        } else {
            self.counters.drop(crate::counters::DropReason::TooManyStrays);
        }
    }
}
