//! What an endpoint keeps of another one.

mod congestion;
mod inbound;
mod liveness;
mod outbound;
mod rtt;

pub(crate) use congestion::Congestion;
pub(crate) use inbound::{FrameOrder, Inbound};
pub(crate) use liveness::{Expected, Liveness};
pub(crate) use outbound::{Item, Outbound, Resent, Segment};

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use base::time::{Duration, Instant};

use crate::address::{Address, NicId};
use crate::config::Config;
use crate::ids::{MessageId, ReceiveId};
use crate::large::{Block, Job};
use crate::outgoing::BulkState;
use crate::seq::Seq;

/// The other end, as it has introduced itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteIdentity {
    /// Which life of it this is.
    pub(crate) instance: u64,
    /// What frames to it have to bear.
    pub(crate) token: u32,
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    #[default]
    Connecting,
    /// The other end asked for it and was answered; it has not used the answer.
    Answered,
    Up,
}

/// Where the pieces of an eager message go that is arriving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EagerTarget {
    /// To the place that a receive named.
    Receive(ReceiveId),
    /// To memory of ours: no receive has asked for it.
    Message(MessageId),
}

/// An eager message of which pieces are missing. They come in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arriving {
    pub(crate) match_info: u64,
    pub(crate) total: u32,
    pub(crate) have: u32,
    pub(crate) target: EagerTarget,
}

/// Frames without a number that are due.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Due {
    pub(crate) connects: u8,
    /// The answer to one, and the token that it has to bear.
    pub(crate) answer: Option<u32>,
    pub(crate) probes: u8,
}

impl Due {
    pub(crate) fn ask(&mut self) {
        self.probes = self.probes.max(1);
    }

    pub(crate) fn take_probe(&mut self) -> bool {
        let is_due = self.probes > 0;
        self.probes = self.probes.saturating_sub(1);
        is_due
    }
}

/// How soon one that is shut out asks for the first time.
const PROBE_AGAIN: Duration = Duration::from_millis(5);

/// What is expected of a peer, since when, and when it is asked whether it is there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    pub(crate) liveness: Liveness,
    pub(crate) probe_at: Option<Instant>,
    pub(crate) probe_every: Duration,
    /// It permits no more.
    shut_out: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Peer {
    pub(crate) address: Address,
    pub(crate) link: ConnectionState,
    pub(crate) token: u32,
    pub(crate) theirs: Option<RemoteIdentity>,
    /// Bytes after the Ethernet header of the largest frame to it.
    pub(crate) mtu: usize,
    pub(crate) crc: bool,
    /// The key that it asks for, as far as somebody here gave one.
    pub(crate) key: u32,
    /// The host that it has come from, if it was not this endpoint that asked for it.
    pub(crate) guest_of: Option<NicId>,
    /// It is to show that it is still there.
    pub(crate) is_doubted: bool,
    /// When to give up connecting: it has not shown yet that it knows this connection.
    pub(crate) connect_until: Option<Instant>,
    /// When to ask it again, and how often that was done.
    pub(crate) connect_at: Option<Instant>,
    pub(crate) attempts: u32,
    /// This end wants it, too, for so long, though it was the other end that asked.
    pub(crate) wanted_until: Option<Instant>,

    pub(crate) inbound: Inbound,
    pub(crate) outbound: Outbound,
    pub(crate) arriving: Option<Arriving>,
    /// Bytes of eager messages that it may send, counted since it was connected.
    pub(crate) granted: Seq,
    /// What of it is reserved for this peer.
    pub(crate) share: u32,
    pub(crate) unexpected: u32,
    /// Messages of it that no receive has taken, of any kind.
    pub(crate) waiting: u32,
    /// It must begin no more messages: the number of the frame that was the next one of its when
    /// that was decided.
    pub(crate) full_since: Option<Seq>,
    /// What was granted in the last frame to it.
    pub(crate) granted_sent: Seq,

    /// Blocks of messages that were asked for, in the order of asking.
    pub(crate) requested: VecDeque<Block>,
    /// Blocks to ask for.
    pub(crate) to_request: VecDeque<Block>,
    /// Large messages of ours that it has not finished with.
    pub(crate) announced: u32,
    /// Its requests for frames of them, and those that wait for a bulk path.
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) parked: Vec<Job>,
    /// It is in the queue of those whose requests are answered in turn.
    pub(crate) has_turn: bool,

    /// The path for frames that are longer than its MTU.
    pub(crate) bulk: BulkState,

    pub(crate) due: Due,
    pub(crate) watch: Watch,
    /// A burst to it has begun and not ended: so many frames will have left in its course when the
    /// next one does that a host waits for. 0 if there is none.
    pub(crate) burst: u32,
    /// The frame that ends the burst has to be marked.
    pub(crate) mark_owed: bool,
    /// It is in the queue of those that have something to send.
    pub(crate) is_ready: bool,
    pub(crate) timer_at: Option<Instant>,
    /// A number of the application's (`mx_set_endpoint_addr_context`).
    pub(crate) context: u64,
}

impl Peer {
    pub(crate) fn new(
        address: Address,
        link: ConnectionState,
        token: u32,
        first: Seq,
        config: &Config,
    ) -> Self {
        Self {
            address,
            link,
            token,
            mtu: config.mtu.into(),
            crc: config.crc,
            outbound: Outbound::new(first, config),
            ..Self::default()
        }
    }

    /// Whether frames may go to it. One that was answered has to show first that it is alive, so
    /// that what is sent to a later life was never sent to this one.
    pub(crate) const fn is_reachable(&self) -> bool {
        matches!(self.link, ConnectionState::Up) && self.theirs.is_some()
    }

    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        let Due { connects, answer, probes } = self.due;
        let is_due = connects > 0 || answer.is_some() || probes > 0 || self.inbound.is_due(now);
        !is_due && self.to_request.is_empty() && self.burst == 0 && self.outbound.is_quiet()
    }

    /// Asks again for a connection, or whether there is one.
    ///
    /// Every second time it asks twice, and one who has asked us hears the answer again: where
    /// every second frame is lost, a request and its answer in turn would always lose the same.
    pub(crate) fn ask_to_connect(&mut self) {
        let is_second = self.attempts.is_multiple_of(2);
        let times = 1 + u8::from(is_second);
        match self.link {
            ConnectionState::Connecting => self.due.connects = times,
            ConnectionState::Answered if is_second => {
                self.due.answer = self.theirs.map(|theirs| theirs.token);
            }
            ConnectionState::Answered | ConnectionState::Up => self.due.probes = times,
        }
    }

    /// How it is to be watched from `now` on.
    pub(crate) fn watched(&self, now: Instant, config: &Config) -> Watch {
        let mut watch = self.watch;
        let is_reachable = self.is_reachable();
        let arrival = is_reachable && self.outbound.is_waiting();
        // A block that is about to be asked for again has been asked for before.
        let reply = is_reachable && (!self.requested.is_empty() || !self.to_request.is_empty());
        let next = is_reachable && (self.arriving.is_some() || self.inbound.early_bytes() > 0);
        let patience = is_reachable && (self.outbound.is_shut_out() || self.announced > 0);
        let word = arrival || reply || next || patience || self.is_doubted;
        if watch.liveness.has(Expected::AnyFrame) != word {
            watch.probe_every = config.probe_interval();
            watch.probe_at = word.then(|| now + watch.probe_every);
        }
        let expected = [
            (Expected::AnyFrame, word),
            (Expected::Ack, arrival),
            (Expected::Reply, reply),
            (Expected::NextFrame, next),
        ];
        for (frame, is_expected) in expected {
            watch.liveness.set(frame, is_expected, now);
        }
        let shut_out = self.outbound.is_shut_out();
        if shut_out && !watch.shut_out {
            // The frame that lets us in again may be lost, and it is not sent twice.
            watch.probe_every = PROBE_AGAIN.min(config.probe_interval());
            watch.probe_at = Some(now + watch.probe_every);
        }
        watch.shut_out = shut_out;
        watch
    }

    /// When something is due of it, if it is watched like this.
    pub(crate) fn deadline(&self, watch: &Watch, config: &Config) -> Option<Instant> {
        const NEVER: Instant = Instant::from_nanos(u64::MAX);
        let is_up = self.link == ConnectionState::Up;
        let timers = [
            self.connect_until,
            self.wanted_until.filter(|_| is_up),
            self.connect_at,
            self.inbound.deadline(),
            self.outbound.deadline(),
            watch.probe_at,
            watch.liveness.deadline(config.peer_timeout),
        ];
        let mut at = NEVER;
        for timer in timers {
            at = at.min(timer.unwrap_or(NEVER));
        }
        let answered_at = watch.liveness.since(Expected::Reply);
        for block in &self.requested {
            at = at.min(block.due(answered_at));
        }
        (at != NEVER).then_some(at)
    }
}
