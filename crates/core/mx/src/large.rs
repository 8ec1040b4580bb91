//! Large messages: announced by their sender, pulled by their receiver.
//!
//! ```text
//!  sender                          receiver
//!    │──── rendezvous (region) ───────▶│ matched: a pull begins
//!    │◀─── pull (block 0) ─────────────│ up to `blocks` requests of 32 frames are in flight,
//!    │◀─── pull (block 1) ─────────────│ and up to `pull_window` frames of all pulls together
//!    │──── reply × 32 ────────────────▶│
//!    │◀─── pull (block 2) ─────────────│ block 0 is complete
//!    │──── reply × 32 ────────────────▶│
//!    │◀─── notify ─────────────────────│ all is there, or as much as fitted
//! ```
//!
//! The receiver decides what is sent, so many senders cannot overrun it, and it alone keeps a list
//! of what is missing. A request names the frames that are wanted: asking again costs only what was
//! lost. A block is asked for again when frames of a later request arrive in some number, soon
//! after its last frame has come, or when nothing has come for as long as an answer may take. Two
//! threads that send for one endpoint may swap requests, and no peer should be asked twice for
//! that: so a request without any answer waits for frames of the third after it, or until those of
//! the next two have stopped.

use alloc::collections::{BTreeMap, VecDeque};

use base::time::{Duration, Instant};

use crate::config::{BLOCK_FRAMES, Config};
use crate::ids::{PeerId, ReceiveId, SendId};
use crate::peer::Congestion;
use crate::wire::BULK_PAYLOAD;

/// The window of all pulls together at first, in frames.
const FIRST_WINDOW: u32 = 128;

/// Inserts an item under the next name that no other has.
fn insert_named<T>(items: &mut BTreeMap<u32, T>, next: &mut u32, item: T) -> u32 {
    while items.contains_key(next) {
        *next = next.wrapping_add(1);
    }
    let name = *next;
    *next = name.wrapping_add(1);
    items.insert(name, item);
    name
}

/// The large messages of ours that peers may pull.
#[derive(Debug)]
pub(crate) struct Regions {
    pub(crate) announced: BTreeMap<u32, Region>,
    next: u32,
}

impl Regions {
    /// None; names count from `first` on.
    pub(crate) const fn new(first: u32) -> Self {
        Self { announced: BTreeMap::new(), next: first }
    }

    /// Names a message that its receiver may pull from now on.
    pub(crate) fn insert(&mut self, region: Region) -> u32 {
        insert_named(&mut self.announced, &mut self.next, region)
    }

    pub(crate) fn get(&self, name: u32, peer: PeerId) -> Option<Region> {
        self.announced.get(&name).filter(|region| region.peer == peer).copied()
    }

    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.announced.retain(|_, region| region.peer != peer);
    }
}

/// The large messages of peers that come to us. One congestion window limits all of them together,
/// since they share the last link.
#[derive(Debug)]
pub(crate) struct Pulls {
    pub(crate) active: BTreeMap<u32, Pull>,
    next: u32,
    /// Those that may ask for more, in turn.
    queue: VecDeque<u32>,
    /// Frames that were asked for and have not come.
    pub(crate) in_flight: u32,
    pub(crate) congestion: Congestion,
    /// How many requests were sent.
    pub(crate) requests: u64,
}

impl Pulls {
    /// None; names count from `first` on.
    pub(crate) fn new(first: u32, config: &Config) -> Self {
        let window = FIRST_WINDOW.min(config.pull_window);
        Self {
            active: BTreeMap::new(),
            next: first,
            queue: VecDeque::new(),
            in_flight: 0,
            congestion: Congestion::new(window, BLOCK_FRAMES, config.pull_window),
            requests: 0,
        }
    }

    /// A pull begins. It may ask for blocks in its turn.
    pub(crate) fn insert(&mut self, pull: Pull) {
        let name = insert_named(&mut self.active, &mut self.next, pull);
        self.queue.push_back(name);
    }

    /// The next block to ask for, and the peer that sends it: messages take turns, as long as the
    /// window permits.
    pub(crate) fn next_block(&mut self, now: Instant, blocks: u8) -> Option<(PeerId, Block)> {
        while self.in_flight < self.congestion.window() {
            let name = self.queue.pop_front()?;
            let Some(pull) = self.active.get_mut(&name) else { continue };
            pull.is_queued = false;
            if pull.open >= blocks {
                continue;
            }
            let Some(block) = pull.next_block(name, now) else { continue };
            pull.is_queued = true;
            self.queue.push_back(name);
            self.in_flight += block.count;
            return Some((pull.peer, block));
        }
        None
    }

    /// Bytes have come, and perhaps the last ones of a block. The pull, if that was all of it.
    pub(crate) fn on_reply(&mut self, name: u32, bytes: u64, is_complete: bool) -> Option<Pull> {
        let pull = self.active.get_mut(&name)?;
        pull.received += bytes;
        if is_complete {
            pull.open -= 1;
            self.congestion.on_ack(BLOCK_FRAMES);
            if !pull.is_queued {
                pull.is_queued = true;
                self.queue.push_back(name);
            }
        }
        if pull.received < pull.wanted {
            return None;
        }
        self.active.remove(&name)
    }
}

/// A large message of ours that its receiver may pull.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) send: SendId,
    pub(crate) peer: PeerId,
}

/// Frames of a region that its receiver has asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) peer: PeerId,
    pub(crate) region: u32,
    pub(crate) pull: u32,
    pub(crate) offset: u64,
    pub(crate) first: u32,
    pub(crate) wanted: u32,
    /// Bytes in each frame but the last.
    pub(crate) payload: u16,
    /// Its receiver waits for the last of them.
    pub(crate) prompt: bool,
    pub(crate) sent: u32,
}

impl Job {
    pub(crate) const fn is_bulk(&self) -> bool {
        self.payload as usize == BULK_PAYLOAD
    }
}

/// A large message of a peer's that comes to us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pull {
    pub(crate) peer: PeerId,
    pub(crate) region: u32,
    pub(crate) receive: ReceiveId,
    /// Bytes of the message, and how many of them are wanted.
    pub(crate) length: u64,
    pub(crate) wanted: u64,
    /// Bytes in each frame but the last.
    pub(crate) payload: u32,
    /// What has not been asked for begins here, with the frame of this number.
    pub(crate) offset: u64,
    pub(crate) index: u32,
    /// Blocks that are not complete.
    pub(crate) open: u8,
    pub(crate) received: u64,
    /// It stands in the queue of those that may ask for more.
    pub(crate) is_queued: bool,
}

impl Pull {
    pub(crate) const fn is_bulk(&self) -> bool {
        self.payload as usize == BULK_PAYLOAD
    }

    pub(crate) fn next_block(&mut self, name: u32, now: Instant) -> Option<Block> {
        let left = self.wanted - self.offset;
        if left == 0 {
            return None;
        }
        let count = left.div_ceil(self.payload.into()).min(BLOCK_FRAMES.into()) as u32;
        let block = Block {
            pull: name,
            first: self.index,
            offset: self.offset,
            count,
            missing: first_bits(count),
            counted: count,
            request: 0,
            later: 0,
            since: now,
            timeout: Duration::ZERO,
            is_late: false,
            tries: 0,
        };
        self.offset = (self.offset + u64::from(count) * u64::from(self.payload)).min(self.wanted);
        self.index = self.index.wrapping_add(count);
        self.open += 1;
        Some(block)
    }

    /// Whether a host should be interrupted when this block is complete, though an interrupt costs
    /// more than many frames: when it is the last one; when there is more to ask for and half of
    /// the requests that may be in flight have been answered; or when hardly any are in flight.
    /// `blocks` is how many may be.
    pub(crate) fn is_waited_for(&self, block: &Block, blocks: u8) -> bool {
        let span = u64::from(BLOCK_FRAMES) * u64::from(self.payload);
        let blocks = u64::from(blocks);
        let half = (blocks / 2).max(1);
        // By then all before the one at this offset have been asked for.
        let next = block.offset + (blocks - half + 1) * span;
        let is_half = (block.offset / span + 1).is_multiple_of(half) && next < self.wanted;
        let is_last = block.offset + span >= self.wanted;
        let runs_dry = self.offset < self.wanted && u64::from(self.open) < half;
        is_last || is_half || runs_dry || block.tries > 0
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Our name for the transfer.
    pub(crate) pull: u32,
    pub(crate) first: u32,
    pub(crate) offset: u64,
    pub(crate) count: u32,
    pub(crate) missing: u32,
    /// How many of them count as under way. Of a block that was asked for again none do.
    pub(crate) counted: u32,
    /// The number of the request that asked for it last.
    pub(crate) request: u64,
    /// Frames that have come since then in answer to later requests.
    pub(crate) later: u32,
    /// When it was asked for, or a frame of it last came, and how long after that an answer is
    /// missing.
    pub(crate) since: Instant,
    pub(crate) timeout: Duration,
    /// The last frame of it has come: what is missing is late.
    pub(crate) is_late: bool,
    pub(crate) tries: u32,
}

impl Block {
    /// When to ask again, of a peer that last answered a request of any kind at `answered_at`.
    /// Requests are answered one after the other, so a peer that answers others will come to this
    /// one.
    pub(crate) fn due(&self, answered_at: Instant) -> Instant {
        let since = if self.is_late { self.since } else { self.since.max(answered_at) };
        since + self.timeout
    }

    /// Whether it was asked for once, and nothing of it has come.
    pub(crate) const fn is_unanswered(&self) -> bool {
        self.tries == 0 && self.missing == first_bits(self.count)
    }

    /// Which frame of this block has this number, if any.
    pub(crate) fn bit(&self, pull: u32, index: u32) -> Option<u32> {
        let bit = index.wrapping_sub(self.first);
        (self.pull == pull && bit < self.count).then_some(bit)
    }
}

pub(crate) const fn first_bits(count: u32) -> u32 {
    if count >= 32 { u32::MAX } else { (1 << count) - 1 }
}
