//! Frames between endpoints of one host, through shared memory.
//!
//! ```text
//!   sender                                                receiver
//!   ShmPort ── ring of frames, made by the sender ──────▶ ShmPort
//!           └─ unix socket: greeting, bells, the end ───▶ (listens)
//! ```
//!
//! Each port listens on a unix socket with an abstract name, which says scope, NIC and endpoint. A
//! port that has a frame for another connects to it once and passes a ring (`ring.rs`, `link.rs`)
//! of 512 KiB. A frame takes no system call while the receiver polls; one that has armed the port
//! is woken by a bell. It looks into rings in which something has come of late, and hears of others
//! by calls (`calls.rs`).
//!
//! Frames may be longer than the MTU: there is a [path for bulk frames](super::BulkPath) to each
//! endpoint, once both have a connection to the other. Large messages are not in the ring if the
//! receiver may read the memory of the sender (`remote.rs`): their announcement refers to them, and
//! the receiver has the kernel copy them to where they belong, once.
//!
//! As on a wire, frames for an endpoint that is not there, or has just died, are counted as
//! [refused](PortCounters::refused) and forgotten. A sender whose receiver has no room has to come
//! [later](Room::Later), whatever its next frame is for. A receiver that takes nothing for 10 ms is
//! taken to sleep: frames for it are lost, which it [counts](PortCounters::overrun), until it has
//! taken one. What a sender has left in its ring when it dies is still received.
//!
//! # Trust
//!
//! Any process of the network namespace may connect to an abstract name, and say which NIC and
//! endpoint it is, as one that may open a packet socket can. The kernel tells whose process it is,
//! and either side goes on only if that is its own user, or root; a stranger who took the name
//! first gets no frames, but has the endpoint. The other side may still be in disorder: whatever it
//! writes is checked, its memory cannot shrink, and no call that touches its descriptors waits.

mod calls;
mod connections;
mod link;
mod network;
mod remote;
mod ring;
mod send;
mod take;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use base::time::{Duration, Instant};
use rustc_hash::FxHashMap;
use rustix::event::epoll;

use super::again::RetryTimer;
use super::name::{NameListener, REMEDY};
use super::{
    Address, BulkState, Identity, LATER, NicId, Port, PortCounters, PortError, Reference, Room,
    TakeFrame, Transmitted, WriteFrame, check_mtu,
};
use calls::Calls;
use link::{Inbound, Outbound};
use network::Network;
pub use remote::memory_obstacle;
use ring::{MAX_LINES, MIN_LINES, ROOM, RecordKind, Wake, is_possible};
use sys::clock;
use sys::memory::CACHE_LINE;

/// The most connections that are accepted, those without a greeting included.
const MAX_INBOUND: usize = calls::MOST;
/// After so many looks in vain a ring is not looked into any more: some milliseconds.
const IDLE_AFTER: u32 = 1 << 15;
/// How often a port that polls looks who came and went.
const LOOK: Duration = Duration::from_micros(20);
/// It looks at the clock once in so many times that it finds nothing: the clock costs more than
/// that.
const IDLE: u32 = 8;
/// A port that always finds frames looks after so many batches.
const BUSY: u32 = 64;
/// How long a sender waits for a receiver that takes nothing.
const SEND_TIMEOUT: Duration = Duration::from_millis(10);
/// How long an endpoint that was not there is not looked for.
const ABSENCE: Duration = Duration::from_millis(1);
const EVENTS: usize = 32;
/// What the kernel keeps of connections that were not accepted yet.
const BACKLOG: i32 = 256;

const LISTENER: u64 = u64::MAX;
/// The listener, after it could not accept.
const AGAIN: u64 = u64::MAX - 1;
const OUTBOUND: u64 = 1 << 56;

/// What a port within a host is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShmSettings {
    /// Which ports can reach each other, besides being in one network namespace: any number, such
    /// as the index of the interface that they have in common.
    pub scope: u32,
    /// The largest frame, in bytes.
    pub mtu: u16,
    /// Bytes that may be on their way to each receiver: a power of two, 128 KiB to 4 MiB.
    pub ring: u32,
    /// Whether data may be read from the memory of senders, where the kernel permits that.
    pub reads_memory: bool,
}

impl ShmSettings {
    /// 512 KiB for each receiver; memory is read.
    #[must_use]
    pub const fn new(scope: u32, mtu: u16) -> Self {
        Self { scope, mtu, ring: 512 << 10, reads_memory: true }
    }

    const fn lines(self) -> u32 {
        self.ring / CACHE_LINE as u32
    }
}

const _: () = assert!(MIN_LINES as usize * CACHE_LINE == 128 << 10, "what `ring` says");
const _: () = assert!(MAX_LINES as usize * CACHE_LINE == 4 << 20, "what `ring` says");

/// A port to endpoints of this host.
pub struct ShmPort {
    nic: NicId,
    endpoint: u8,
    settings: ShmSettings,
    network: Network,
    listener: NameListener,
    epoll: OwnedFd,
    /// Accepts who could not be accepted.
    again: RetryTimer,
    /// Those that are looked at first, so many, and those that call.
    inbound: Vec<Inbound>,
    busy: usize,
    calls: Calls,
    /// The numbers of calls that are not in use.
    free: Vec<u16>,
    turn: usize,
    accepted: u64,
    outbound: FxHashMap<u64, Outbound>,
    /// When endpoints were looked for and not found.
    absent: BTreeMap<Address, Instant>,
    spare: Option<OwnedFd>,
    /// What has found no room.
    staged: VecDeque<(Address, RecordKind, Box<[u8]>)>,
    /// Where a frame is written that is to be sent, and where one comes to.
    staging: Vec<u8>,
    record: Vec<u8>,
    /// Changes of paths that the engine has not taken yet.
    changes: Vec<(Address, BulkState)>,
    looked: Instant,
    batches: u32,
    /// How often nothing was found since the clock was looked at.
    idle: u32,
    counters: PortCounters,
}

impl ShmPort {
    /// Opens `endpoint` of `nic` for others in the network of this thread.
    ///
    /// # Errors
    /// If a setting is out of range, the endpoint is taken, or the system gives no descriptors.
    pub fn open(nic: NicId, endpoint: u8, settings: ShmSettings) -> Result<Self, PortError> {
        let port = nic.to_string();
        check_mtu(&port, settings.mtu.into())?;
        if !is_possible(settings.lines()) || !settings.ring.is_power_of_two() {
            let what = format!("a ring of {} bytes", settings.ring);
            let range = "a power of two, 128 KiB to 4 MiB";
            return Err(PortError::Setting { port, what, range });
        }
        let network = Network::here();
        let name = name(settings.scope, Address { nic, endpoint });
        let listener = NameListener::new(&name, BACKLOG, (&port, endpoint), || network.socket())?;
        let refused = PortError::system("open shared memory", &port, REMEDY);
        let epoll = watch(&listener).map_err(&refused)?;
        let again = RetryTimer::new(&epoll, AGAIN).map_err(&refused)?;
        let calls = Calls::new().map_err(&refused)?;
        Ok(Self {
            nic,
            endpoint,
            settings,
            network,
            listener,
            epoll,
            again,
            inbound: Vec::new(),
            busy: 0,
            calls,
            free: (0..MAX_INBOUND as u16).rev().collect(),
            turn: 0,
            accepted: 0,
            outbound: FxHashMap::default(),
            absent: BTreeMap::new(),
            spare: None,
            staged: VecDeque::new(),
            staging: vec![0; ROOM],
            record: vec![0; ROOM],
            changes: Vec::new(),
            looked: clock::now(),
            batches: 0,
            idle: 0,
            counters: PortCounters::default(),
        })
    }
}

impl Port for ShmPort {
    fn identity(&self) -> Identity {
        Identity { nic: self.nic, endpoint: self.endpoint, mtu: self.settings.mtu, host_bytes: 6 }
    }

    fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError> {
        let mut staging = std::mem::take(&mut self.staging);
        let mut has_room = self.flush();
        while has_room && let Some(outgoing) = write.next(&mut staging) {
            let data = write.data();
            let to = outgoing.address();
            has_room = self.offer(to, &staging[..outgoing.length - data.len()], data);
        }
        self.staging = staging;
        Ok(if has_room { Transmitted::Drained } else { Transmitted::Full(Room::Later(LATER)) })
    }

    fn bulk_changes(&mut self) -> Vec<(Address, BulkState)> {
        std::mem::take(&mut self.changes)
    }

    fn close_bulk_path(&mut self, peer: Address) {
        self.void(peer);
    }

    fn read(&mut self, peer: Address, reference: Reference, place: &mut [u8]) -> bool {
        self.fetch(peer, reference, place)
    }

    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
        self.hear_calls();
        let mut came = 0;
        for _ in 0..self.busy {
            if came == budget {
                break;
            }
            // One that was removed leaves fewer; the next call sees those that this one skips.
            self.turn = if self.turn + 1 < self.busy { self.turn + 1 } else { 0 };
            came += self.take(self.turn, budget - came, take);
        }
        self.batches += 1;
        let is_idle = came == 0 && self.has_been_idle();
        if is_idle || self.batches >= BUSY && came > 0 {
            self.poll_connections();
            self.forget_gone();
            self.rest();
        }
        Ok(came)
    }

    fn arm(&mut self) -> Result<bool, PortError> {
        let busy = &mut self.inbound[..self.busy];
        let rings = busy.iter_mut().filter_map(|inbound| inbound.ring.as_mut());
        let any = rings.fold(false, |any, (_, ring)| ring.arm(Wake::Bell) || any);
        Ok(self.calls.arm() || any)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn clear(&mut self) -> Result<(), PortError> {
        let mut any = false;
        for inbound in &mut self.inbound[..self.busy] {
            if inbound.ring.as_mut().is_some_and(|(_, ring)| ring.was_rung()) {
                self.counters.calls_in += 1;
                inbound.read_bell();
                any = true;
            }
        }
        // If it was something else, the next one who finds nothing looks.
        if !any {
            self.looked = Instant::ZERO;
        }
        Ok(())
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.overrun += self.inbound.iter_mut().map(lost).sum::<u64>();
        self.counters
    }
}

/// Frames of a connection that were lost since this was last asked.
fn lost(inbound: &mut Inbound) -> u64 {
    inbound.ring.as_mut().map_or(0, |(_, ring)| ring.lost())
}

fn name(scope: u32, endpoint: Address) -> String {
    format!("earmark-mx/shm/{scope}/{endpoint}")
}

/// An endpoint as a number of 56 bits.
fn number(Address { nic, endpoint }: Address) -> u64 {
    let [a, b, c, d, e, f] = nic.0;
    u64::from_be_bytes([0, a, b, c, d, e, f, endpoint])
}

fn watch(listener: &NameListener) -> io::Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&epoll, listener, epoll::EventData::new_u64(LISTENER), flags)?;
    Ok(epoll)
}

#[cfg(test)]
mod tests;
