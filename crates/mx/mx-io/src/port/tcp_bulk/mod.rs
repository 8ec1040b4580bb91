//! A port that sends the bulk of messages over TCP, and everything else by another port.
//!
//! The kernel carries a stream of bytes for a fraction of what as many frames cost it, and so do
//! most NICs. Short messages, and whatever a host waits for, gain nothing from it. So data go over
//! a connection, in [bulk frames](::mx::wire::BULK_PAYLOAD) far longer than the MTU, and all else
//! over Ethernet, where NICs see marks. The engine decides what goes which way ([`BulkPath`]).
//!
//! ```text
//!  a, which pulls or sends data           b
//!    │── Ethernet: call (address, n) ──────▶│
//!    │◀─ Ethernet: coming (n, m) ───────────│
//!    │◀═ TCP: hello (b, n) ═════════════════│ it has read the call, which was for b alone
//!    │══ TCP: welcome (m) ═════════════════▶│ it has read the answer, which was for a alone
//! ```
//!
//! So each end knows that the other reads the frames for its address, as MX on Ethernet trusts it
//! to; the tokens of MX tell which frames belong to which life of an endpoint. Until then frames go
//! over Ethernet, and so they do if there is no connection: a firewall, or a peer without TCP,
//! costs a frame a second. Of two that ask at the same time, the one with the lower address is
//! answered.
//!
//! Any host may connect, and is disconnected after a second without the nonce; at most
//! [`MAX_OPENING`] connections wait for it, of which a new one replaces the oldest. Any host on the
//! segment may ask this port to connect to an address there, at a port from 1024 on, but to none
//! behind a router, on another interface, or of this host alone.

mod asks;
mod connect;
mod counted;
mod link;
mod offload;
mod opening;

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ::mx::address::Address;
use ::mx::outgoing::{BulkPath, BulkState};
use ::mx::wire::{BULK_FRAME, FLAG_ASK, FrameType};
use base::time::Duration;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;

use super::again::RetryTimer;
use super::{
    Identity, NicId, Outgoing, Port, PortCounters, PortError, TakeFrame, Transmitted, WriteFrame,
    in_turns,
};
use asks::{ASK, Ask, Asked};
use counted::Counted;
use link::{Link, MAX_PADDING, PREFIX, pad};
use offload::segments_late;
use opening::{Opening, never_pace};
use sys::clock;

/// How often a spinning thread looks at connections: once in so many looks at the outer port, while
/// it has done so in vain fewer times than the second number says.
const LOOK_EVERY: [(u32, u32); 2] = [(4, 512), (16, 1024)];
/// How often it does so otherwise, since peers may send at any time.
const COLD: u32 = 64;

/// The most connections that wait for others to say who they are, and the most that this port is
/// about to open. Of these, one NIC gets as many as are left for others.
pub const MAX_OPENING: usize = 64;
const OPENS_FOR: Duration = Duration::from_millis(1000);
/// No peer is called at a port below this one, where services of the system listen.
const LEAST_PORT: u16 = 1024;
/// The most connections that are open.
const MAX_LINKS: usize = 1024;

/// An eager message has to be longer than this to gain from TCP, in bytes, if each segment passes
/// through the whole stack. Otherwise some 4.5 KiB are enough.
const LEAST_WITHOUT_OFFLOAD: u32 = 15 << 10;

/// Where the engine writes a frame in the staging area: behind what goes before it.
const STAGED: usize = MAX_PADDING + PREFIX;

/// The most events of one look.
const EVENTS: usize = 64;
/// Events of a connection that is over.
const BROKEN: EventFlags = EventFlags::ERR.union(EventFlags::HUP);
const LISTENER: u64 = 0;
/// The listener, after it could not accept.
const AGAIN: u64 = u64::MAX;

/// A port with connections beside it.
pub struct TcpBulkPort<P> {
    outer: P,
    bulk: Bulk,
    bulk_first: bool,
}

struct Bulk {
    own: Address,
    mtu: usize,
    interface: u32,
    /// [`BulkState::min`] of all connections.
    min: Option<u32>,
    address: SocketAddrV4,
    listener: TcpListener,
    /// Readable if a connection is, or has room again.
    epoll: OwnedFd,
    /// Accepts who could not be accepted.
    again: RetryTimer,
    connections: FxHashMap<u64, TcpConnection>,
    latest_token: u64,
    /// Those that are open, by peer.
    links: FxHashMap<Address, u64>,
    /// Peers whose connection is over.
    broken: FxHashSet<Address>,
    asked: Asked,
    /// Frames about connections, which have not left.
    asks: Vec<(Address, Ask)>,
    /// Changes that the engine has not taken yet.
    changes: Vec<(Address, BulkState)>,
    /// Where the engine writes, since the outer port has room for short frames only.
    staging: Box<[u8]>,
    /// Connections that keep some bytes back, since others were to follow.
    corked: Vec<u64>,
    /// Looks at connections in vain since the last sign of bulk frames, and looks at the outer port
    /// since then.
    vain: u32,
    looks: u32,
    counters: PortCounters,
}

enum TcpConnection {
    Opening(Opening),
    Open(Address, Link),
}

impl TcpConnection {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Opening(opening) => opening.as_fd(),
            Self::Open(_, link) => link.as_fd(),
        }
    }
}

impl<P: Port> TcpBulkPort<P> {
    /// Adds connections from and to `address`, which is that of the interface with this index, to a
    /// port.
    ///
    /// # Errors
    /// If the address is not of this host, or there are no more descriptors.
    pub fn new(outer: P, interface: u32, address: Ipv4Addr) -> Result<Self, PortError> {
        let name = format!("{address}, for bulk data");
        let remedy = "use the address of the interface: ip -4 -brief address";
        let fail = PortError::system("listen for TCP connections", &name, remedy);
        let bulk = Bulk::new(&outer, interface, address).map_err(fail)?;
        Ok(Self { outer, bulk, bulk_first: false })
    }
}

impl<P> TcpBulkPort<P> {
    /// Where peers connect.
    #[must_use]
    pub fn tcp_address(&self) -> SocketAddrV4 {
        self.bulk.address
    }
}

impl<P: Port> Port for TcpBulkPort<P> {
    fn identity(&self) -> Identity {
        self.outer.identity()
    }

    fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError> {
        let Self { outer, bulk, .. } = self;
        let outcome = outer.transmit(&mut |frame: &mut [u8]| bulk.write(frame, write));
        bulk.push();
        outcome
    }

    fn bulk_changes(&mut self) -> Vec<(Address, BulkState)> {
        std::mem::take(&mut self.bulk.changes)
    }

    fn close_bulk_path(&mut self, peer: Address) {
        if let Some(&token) = self.bulk.links.get(&peer) {
            self.bulk.close(token);
        }
        self.bulk.broken.remove(&peer);
    }

    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
        let Self { outer, bulk, bulk_first } = self;
        let is_due = bulk.is_due();
        let mut look = |by_tcp, budget| {
            if by_tcp {
                return Ok(bulk.receive(budget, take));
            }
            outer.receive(budget, &mut |from: NicId, frame: &[u8]| match frame.first() {
                Some(&ASK) => bulk.on_ask(from, frame),
                _ => take.take(from, frame),
            })
        };
        if is_due { in_turns(bulk_first, budget, look) } else { look(false, budget) }
    }

    fn arm(&mut self) -> Result<bool, PortError> {
        // The descriptor of connections is readable for as long as there is something.
        self.outer.arm()
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.outer.readiness()
    }

    fn more_readiness(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = self.outer.more_readiness();
        all.push(self.bulk.epoll.as_fd());
        all
    }

    fn clear(&mut self) -> Result<(), PortError> {
        // It may have been any of them.
        self.bulk.looks = COLD;
        self.outer.clear()
    }

    fn counters(&mut self) -> PortCounters {
        self.outer.counters().and(self.bulk.counters)
    }
}

/// Once in how many looks at the outer port a thread looks at connections, after so many in vain.
fn look_every(vain: u32) -> u32 {
    LOOK_EVERY.iter().find(|(_, times)| vain < *times).map_or(COLD, |(every, _)| *every)
}

impl Bulk {
    fn new(outer: &impl Port, interface: u32, address: Ipv4Addr) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddrV4::new(address, 0))?;
        listener.set_nonblocking(true)?;
        never_pace(&listener);
        let SocketAddr::V4(address) = listener.local_addr()? else {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        };
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let again = RetryTimer::new(&epoll, AGAIN)?;
        Ok(Self {
            own: Address { nic: outer.nic_id(), endpoint: outer.endpoint() },
            mtu: outer.mtu().into(),
            interface,
            min: (!segments_late(interface)).then_some(LEAST_WITHOUT_OFFLOAD),
            address,
            listener,
            epoll,
            again,
            connections: FxHashMap::default(),
            latest_token: LISTENER,
            links: FxHashMap::default(),
            broken: FxHashSet::default(),
            asked: Asked::new(),
            asks: Vec::new(),
            changes: Vec::new(),
            staging: vec![0; STAGED + BULK_FRAME].into(),
            corked: Vec::new(),
            vain: u32::MAX,
            looks: 0,
            counters: PortCounters::default(),
        })
    }

    /// Writes the next frame for the outer port, after those that go another way.
    fn write(&mut self, frame: &mut [u8], write: &mut WriteFrame<'_>) -> Option<Outgoing> {
        loop {
            if let Some((peer, ask)) = self.asks.pop() {
                return Some(ask.write(self.own, peer, frame));
            }
            if !self.changes.is_empty() {
                // First the engine has to know.
                return None;
            }
            if self.links.is_empty() {
                let outgoing = write.next(&mut frame[..self.mtu])?;
                self.watch(frame[0], outgoing);
                return Some(outgoing);
            }
            let outgoing = write.next(&mut self.staging[STAGED..])?;
            if outgoing.length > self.mtu {
                self.send(outgoing, write.data());
                continue;
            }
            frame[..outgoing.length].copy_from_slice(&self.staging[STAGED..][..outgoing.length]);
            self.watch(frame[0], outgoing);
            return Some(outgoing);
        }
    }

    /// Asks for a connection to a peer that data are sent to or wanted of, or whose connection is
    /// over: then data may wait for another one.
    fn watch(&mut self, frame_type: u8, outgoing: Outgoing) {
        const PULL: u8 = FrameType::Pull as u8;
        const MEDIUM: u8 = FrameType::Medium as u8;
        let peer = outgoing.address();
        let is_data = matches!(frame_type, PULL | MEDIUM);
        if !is_data && (self.broken.is_empty() || !self.broken.contains(&peer)) {
            return;
        }
        if self.links.contains_key(&peer) {
            if frame_type == PULL {
                self.vain = 0;
                if let Some(link) = self.link(peer) {
                    link.expect_run();
                }
            }
            return;
        }
        if self.links.len() >= MAX_LINKS {
            return;
        }
        if let Some(nonce) = self.asked.ask(peer, clock::now()) {
            self.vain = 0;
            self.asks.push((peer, Ask::Call(self.address, nonce)));
        }
    }

    /// Sends a frame over the connection to its peer: what is in the staging area, and the data
    /// that follow.
    fn send(&mut self, outgoing: Outgoing, data: &[u8]) {
        let peer = outgoing.address();
        let Some(&token) = self.links.get(&peer) else { return };
        let Some(TcpConnection::Open(_, link)) = self.connections.get_mut(&token) else { return };
        let end = STAGED + outgoing.length - data.len();
        // Of the frames of a large message others follow, but for the last.
        let &mut [frame_type, flags, ..] = &mut self.staging[STAGED..end] else { return };
        let start = STAGED - PREFIX;
        self.staging[start..STAGED].copy_from_slice(&(outgoing.length as u32).to_be_bytes());
        let mut padding = [0; MAX_PADDING];
        let address = if data.is_empty() { end - start } else { data.as_ptr().addr() };
        let padding = pad(end - start, address, &mut padding);
        let begin = start - padding.len();
        self.staging[begin..start].copy_from_slice(padding);
        let head = &self.staging[begin..end];
        let more = frame_type == FrameType::Reply as u8 && flags & FLAG_ASK == 0;
        self.counters.calls_out += 1;
        self.corked.retain(|other| *other != token);
        if more {
            self.corked.push(token);
        }
        let sent = link.send(head, data, more);
        let is_full = link.is_full();
        if sent.is_err() {
            return self.close(token);
        }
        self.counters.went(1, outgoing.length);
        self.counters.bulk_out += 1;
        self.vain = 0;
        if is_full {
            self.counters.full += 1;
            self.listen(token, EventFlags::IN | EventFlags::OUT);
            self.changed(peer, BulkPath::Full);
        }
    }

    /// Nothing follows for now: what connections keep back has to leave. It is little if the last
    /// frame of a message went over Ethernet.
    fn push(&mut self) {
        for token in self.corked.drain(..) {
            if let Some(TcpConnection::Open(_, link)) = self.connections.get(&token) {
                link.push();
            }
        }
    }

    fn link(&mut self, peer: Address) -> Option<&mut Link> {
        match self.connections.get_mut(self.links.get(&peer)?) {
            Some(TcpConnection::Open(_, link)) => Some(link),
            _ => None,
        }
    }

    fn is_due(&mut self) -> bool {
        self.looks += 1;
        let is_due = self.looks >= look_every(self.vain);
        if is_due {
            self.looks = 0;
        }
        is_due
    }

    /// Looks at connections where something has happened: how many frames have come.
    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> usize {
        let mut room = [MaybeUninit::<Event>::uninit(); EVENTS];
        self.counters.calls_in += 1;
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An error leaves it without events, and the next look makes up for it.
        let waited = epoll::wait(&self.epoll, &mut room, Some(&at_once));
        let events: &[Event] = waited.map_or(&[], |(events, _)| events);
        let mut seen = 0;
        for Event { flags, data } in events.iter().copied() {
            let token = data.u64();
            match self.connections.get_mut(&token) {
                // What is left of a connection that was broken off may not be what was sent.
                Some(TcpConnection::Open(..)) if flags.intersects(BROKEN) => self.close(token),
                Some(TcpConnection::Open(peer, link)) => {
                    let peer = *peer;
                    let outcome = if link.is_full() { link.flush() } else { Ok(()) };
                    let has_room = flags.contains(EventFlags::OUT) && !link.is_full();
                    let outcome = outcome.and_then(|()| {
                        let endpoint = self.own.endpoint;
                        let counters = &mut self.counters;
                        link.receive(
                            peer.nic,
                            &mut Counted { endpoint, counters, seen: &mut seen, take },
                        )
                    });
                    if has_room {
                        self.listen(token, EventFlags::IN);
                        self.changed(peer, BulkPath::Open);
                    }
                    match outcome {
                        Ok(calls) => self.counters.calls_in += calls,
                        Err(_) => self.close(token),
                    }
                }
                Some(TcpConnection::Opening(_)) => self.advance(token),
                None if token == AGAIN => self.accept_again(),
                None => self.accept(),
            }
        }
        self.vain = if events.is_empty() { self.vain.saturating_add(1) } else { 0 };
        // A connection may have had more frames than were asked for.
        seen.min(budget)
    }

    fn changed(&mut self, peer: Address, path: BulkPath) {
        self.changes.push((peer, BulkState { path, min: self.min, reads_memory: false }));
    }

    fn listen(&self, token: u64, flags: EventFlags) {
        if let Some(connection) = self.connections.get(&token) {
            // It fails for none that was added.
            let _ = epoll::modify(&self.epoll, connection.fd(), EventData::new_u64(token), flags);
        }
    }

    fn close(&mut self, token: u64) {
        if let Some(TcpConnection::Open(peer, _)) = self.connections.remove(&token) {
            self.links.remove(&peer);
            if self.broken.len() < MAX_LINKS {
                self.broken.insert(peer);
            }
            self.changed(peer, BulkPath::Closed);
        }
    }
}
