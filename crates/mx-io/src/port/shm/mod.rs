//! Frames between endpoints of one host, through shared memory.
//!
//! ```text
//!   sender                                                receiver
//!   ShmPort ── ring of slots, made by the sender ───────▶ ShmPort
//!           └─ unix socket: greeting, bells, the end ───▶ (listens)
//! ```
//!
//! Each port listens on a unix socket with an abstract name, which says scope, NIC and endpoint. A
//! port that has a frame for another connects to it once and passes a ring (`ring.rs`, `link.rs`);
//! two that talk have one in each direction. A frame is copied into the ring and out of it, and
//! takes no system call while the receiver polls. A receiver that has armed the port is woken by a
//! bell.
//!
//! # What is lost
//!
//! As on a wire: frames for an endpoint that is not there, or has just died, are counted as
//! [refused](PortCounters::refused) and forgotten; timers of MX decide what that means. A sender
//! whose receiver has no room is told to come [later](Room::Later), whomever its next frame is for.
//! A receiver that takes nothing for 10 ms is taken to sleep: frames for it are lost, which it
//! [counts](PortCounters::overrun), until it has taken one. What a sender has left in its ring when
//! it dies is still received.
//!
//! # Whom to trust
//!
//! Any process of the network namespace may connect to an abstract name. The kernel tells whose
//! process it is, and either side goes on only if that is its own user, or root; so endpoints of
//! root and of another user do not talk, and a stranger who took the name first gets no frames, but
//! has the endpoint. The other side may still be in disorder: whatever it writes is checked, its
//! memory cannot shrink, and no call that touches its descriptors waits.
//!
//! Whoever may connect may also say which NIC and endpoint it is, as whoever may open a packet
//! socket can.
//!
//! # Costs
//!
//! A ring has 256 slots, or fewer where frames are large: up to 512 KiB in each direction between
//! any two ports that have talked. A port that polls makes a system call every 20 us to see who
//! came and went; new rings are seen so much later.

mod link;
mod network;
mod ring;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use base::time::{Duration, Instant};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, SocketFlags, accept_with, bind, listen};

use super::{
    Identity, LATER, NicId, Outgoing, Port, PortCounters, PortError, Room, TakeFrame, Transmitted,
    WriteFrame, check_mtu, is_for,
};
use link::{Inbound, Key, MAX_SLOTS, Outbound};
use network::Network;
use ring::{Next, Shape};
use sys::clock;

/// The most connections that are accepted, those without a greeting included.
const MAX_INBOUND: usize = 1024;
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
/// Events that are looked at together.
const EVENTS: usize = 32;
/// What the kernel keeps of connections that were not accepted yet.
const BACKLOG: i32 = 256;

const LISTENER: u64 = u64::MAX;
/// The kind of an event, in the highest byte of its number.
const OUTBOUND: u64 = 1 << 56;

/// What a port within a host is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShmSettings {
    /// Which ports can reach each other, besides being in one network namespace: any number, such
    /// as the index of the interface that they have in common.
    pub scope: u32,
    /// The largest frame, in bytes.
    pub mtu: u16,
    /// Frames that may be on their way to each receiver: a power of two, 8 to 4096.
    pub slots: u32,
}

impl ShmSettings {
    /// 256 slots, or as many as half a MiB has, but 32 at least.
    #[must_use]
    pub fn new(scope: u32, mtu: u16) -> Self {
        let slots = ((512 << 10) / u32::from(mtu.max(1))).clamp(32, 256);
        Self { scope, mtu, slots: 1 << slots.ilog2() }
    }
}

/// A port to endpoints of this host.
pub struct ShmPort {
    nic: NicId,
    endpoint: u8,
    settings: ShmSettings,
    network: Network,
    listener: OwnedFd,
    /// A listener that could not accept who is waiting.
    owes: bool,
    /// Watches the listener and all connections.
    epoll: OwnedFd,
    inbound: Vec<Inbound>,
    /// Where receiving begins.
    turn: usize,
    accepted: u64,
    outbound: BTreeMap<Key, Outbound>,
    /// When endpoints were looked for and not found.
    absent: BTreeMap<Key, Instant>,
    /// A socket that found nobody.
    spare: Option<OwnedFd>,
    /// What is in `staging` and has found no room.
    staged: Option<Outgoing>,
    staging: Vec<u8>,
    buffer: Vec<u8>,
    looked: Instant,
    batches: u32,
    /// How often nothing was found since the clock was looked at.
    idle: u32,
    counters: PortCounters,
}

impl std::fmt::Debug for ShmPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShmPort")
            .field("nic", &self.nic)
            .field("endpoint", &self.endpoint)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl ShmPort {
    /// Opens `endpoint` of `nic` for others in the network of this thread.
    ///
    /// # Errors
    /// If a setting is out of range, the endpoint is taken, or the system gives no descriptors.
    pub fn open(nic: NicId, endpoint: u8, settings: ShmSettings) -> Result<Self, PortError> {
        let port = nic.to_string();
        let mtu = check_mtu(&port, settings.mtu.into())?;
        if !settings.slots.is_power_of_two() || !(8..=MAX_SLOTS).contains(&settings.slots) {
            let what = format!("{} slots", settings.slots);
            return Err(PortError::Setting { port, what, range: "a power of two, 8 to 4096" });
        }
        let network = Network::here();
        let name = name(settings.scope, (nic, endpoint));
        let (listener, epoll) = listen_as(&network, &name).map_err(|cause| {
            if cause.kind() == io::ErrorKind::AddrInUse {
                return PortError::Taken { endpoint, port: port.clone(), holder: None };
            }
            let remedy = "check the limit on open files: ulimit -n";
            PortError::system("listen for endpoints of this host", &port, remedy)(cause)
        })?;
        Ok(Self {
            nic,
            endpoint,
            settings,
            network,
            listener,
            owes: false,
            epoll,
            inbound: Vec::new(),
            turn: 0,
            accepted: 0,
            outbound: BTreeMap::new(),
            absent: BTreeMap::new(),
            spare: None,
            staged: None,
            staging: vec![0; mtu.into()],
            buffer: vec![0; super::MAX_MTU.into()],
            looked: clock::now(),
            batches: 0,
            idle: 0,
            counters: PortCounters::default(),
        })
    }

    /// Whether somebody waits for frames for this endpoint.
    pub(super) fn reaches(&mut self, to: Key) -> bool {
        self.link(to).is_some()
    }

    /// Sends a frame to an endpoint of this host; `false` if there is no room for it now. One that
    /// nobody waits for is lost.
    pub(super) fn offer(&mut self, to: Key, frame: &[u8]) -> bool {
        let Some(link) = self.link(to) else {
            self.counters.refused += 1;
            return true;
        };
        if link.producer.push(frame) {
            link.full_since = None;
            let mut is_alive = true;
            let rings = link.producer.wants_bell();
            if rings {
                is_alive = link.ring();
            }
            self.counters.calls_out += u64::from(rings);
            self.counters.went(1, frame.len());
            if !is_alive {
                self.outbound.remove(&to);
            }
            return true;
        }
        let now = clock::now();
        let since = *link.full_since.get_or_insert(now);
        if now.since(since) < SEND_TIMEOUT {
            return false;
        }
        link.producer.lose();
        if !link.is_alive() {
            self.outbound.remove(&to);
        }
        self.counters.went(1, frame.len());
        true
    }

    /// Keeps a frame that found no room, to be sent first by [`Self::flush`].
    pub(super) fn stage(&mut self, outgoing: Outgoing, frame: &[u8]) {
        self.staging[..frame.len()].copy_from_slice(frame);
        self.staged = Some(outgoing);
        self.counters.full += 1;
    }

    /// Sends the frame that was kept; `false` if there still is no room for it.
    pub(super) fn flush(&mut self) -> bool {
        let Some(outgoing) = self.staged else { return true };
        let staging = std::mem::take(&mut self.staging);
        let to = (outgoing.to, outgoing.endpoint);
        let gone = self.offer(to, &staging[..outgoing.length.min(staging.len())]);
        self.staging = staging;
        if gone {
            self.staged = None;
        } else {
            self.counters.full += 1;
        }
        gone
    }

    /// Sends a frame to all other endpoints of this NIC that have room for it.
    pub(super) fn broadcast(&mut self, frame: &[u8]) {
        for endpoint in 0..=255 {
            if endpoint != self.endpoint && self.link((self.nic, endpoint)).is_some() {
                self.offer((self.nic, endpoint), frame);
            }
        }
    }

    /// The connection to an endpoint, which is made if there is one to connect to.
    fn link(&mut self, to: Key) -> Option<&mut Outbound> {
        if !self.outbound.contains_key(&to) {
            let now = clock::now();
            if self.absent.get(&to).is_some_and(|when| now.since(*when) < ABSENCE) {
                return None;
            }
            self.absent.retain(|_, when| now.since(*when) < ABSENCE);
            let Some(link) = self.connect(to) else {
                self.absent.insert(to, now);
                return None;
            };
            self.outbound.insert(to, link);
        }
        self.outbound.get_mut(&to)
    }

    fn connect(&mut self, to: Key) -> Option<Outbound> {
        let socket = match self.spare.take() {
            Some(spare) => spare,
            None => self.network.socket().ok()?,
        };
        let ShmSettings { scope, mtu, slots } = self.settings;
        let shape = Shape { slots, room: mtu.into() };
        let own = (self.nic, self.endpoint);
        match Outbound::connect(socket, &name(scope, to), own, shape) {
            Ok(link) => {
                let data = epoll::EventData::new_u64(OUTBOUND | number(to));
                epoll::add(&self.epoll, &link, data, epoll::EventFlags::IN).ok()?;
                Some(link)
            }
            Err(spare) => {
                self.spare = spare;
                None
            }
        }
    }

    /// Nothing was found: whether it is time to look who came and went.
    fn has_been_idle(&mut self) -> bool {
        self.idle += 1;
        if self.looked != Instant::ZERO && self.idle < IDLE {
            return false;
        }
        self.idle = 0;
        clock::now().since(self.looked) >= LOOK
    }

    /// Looks who came, who rang, and who is gone.
    fn poll_connections(&mut self) {
        self.batches = 0;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        loop {
            self.counters.calls_in += 1;
            let most = EVENTS as libc::c_int;
            let epoll = self.epoll.as_raw_fd();
            // SAFETY: there is room for as many events as it is told.
            // JUSTIFICATION: rustix calls epoll_pwait2, which valgrind and older filters of system
            // calls do not know.
            let happened = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), most, 0) };
            // The epoll is valid; a signal is no event.
            let happened = usize::try_from(happened).unwrap_or(0);
            for event in &events[..happened] {
                self.handle(event.u64);
            }
            if happened < EVENTS {
                break;
            }
        }
        if self.owes {
            self.accept();
        }
        self.looked = clock::now();
    }

    fn handle(&mut self, event: u64) {
        if event == LISTENER {
            self.accept();
        } else if event & OUTBOUND != 0 {
            self.outbound.retain(|key, link| OUTBOUND | number(*key) != event || link.is_alive());
        } else if let Some(inbound) = self.inbound.iter_mut().find(|it| it.number == event) {
            self.counters.calls_in += 1;
            inbound.read_socket();
        }
    }

    fn accept(&mut self) {
        self.owes = false;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            let socket = match accept_with(&self.listener, flags) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(_) => {
                    // No descriptors, probably. The listener does not tell again of those who wait.
                    self.owes = true;
                    return;
                }
            };
            if self.inbound.len() >= MAX_INBOUND {
                continue;
            }
            self.accepted += 1;
            let Some(inbound) = Inbound::new(self.accepted, socket) else { continue };
            let data = epoll::EventData::new_u64(inbound.number);
            if epoll::add(&self.epoll, &inbound, data, epoll::EventFlags::IN).is_ok() {
                self.inbound.push(inbound);
            }
        }
    }

    /// Takes up to `budget` frames of connection `number`; how many there were.
    fn take(&mut self, number: usize, budget: usize, take: &mut TakeFrame<'_>) -> usize {
        let Some(((from, _), ring)) = &mut self.inbound[number].ring else { return 0 };
        for came in 0..budget {
            match ring.pop(&mut self.buffer) {
                Next::Nothing => return came,
                Next::Nonsense => {
                    self.counters.strange += 1;
                    // Nothing more can be expected of it.
                    self.inbound.remove(number);
                    return came + 1;
                }
                Next::Frame(length) if length > self.settings.mtu.into() => {
                    self.counters.too_long += 1;
                }
                Next::Frame(length) => {
                    let frame = &self.buffer[..length];
                    if is_for(frame, self.endpoint) {
                        self.counters.came(length);
                        take.take(*from, frame);
                    } else {
                        self.counters.strange += 1;
                    }
                }
            }
        }
        budget
    }
}

impl Port for ShmPort {
    fn identity(&self) -> Identity {
        Identity { nic: self.nic, endpoint: self.endpoint, mtu: self.settings.mtu }
    }

    fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError> {
        while self.flush() {
            let Some(outgoing) = write.next(&mut self.staging) else {
                return Ok(Transmitted::Drained);
            };
            self.staged = Some(outgoing);
        }
        Ok(Transmitted::Full(Room::Later(LATER)))
    }

    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
        let mut came = 0;
        for _ in 0..self.inbound.len() {
            if came == budget {
                break;
            }
            // One that was removed leaves fewer; the next call sees those that this one skips.
            self.turn = (self.turn + 1) % self.inbound.len().max(1);
            if self.turn < self.inbound.len() {
                came += self.take(self.turn, budget - came, take);
            }
        }
        self.batches += 1;
        let is_idle = came == 0 && self.has_been_idle();
        if is_idle || self.batches >= BUSY && came > 0 {
            self.poll_connections();
            self.counters.overrun += self.inbound.iter_mut().map(lost).sum::<u64>();
            self.inbound.retain(|inbound| !inbound.is_over());
        }
        Ok(came)
    }

    fn arm(&mut self) -> Result<bool, PortError> {
        let rings = self.inbound.iter_mut().filter_map(|inbound| inbound.ring.as_mut());
        Ok(rings.fold(false, |any, (_, ring)| ring.arm() || any))
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn clear(&mut self) -> Result<(), PortError> {
        let mut any = false;
        for inbound in &mut self.inbound {
            if inbound.ring.as_mut().is_some_and(|(_, ring)| ring.was_rung()) {
                self.counters.calls_in += 1;
                inbound.read_socket();
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
    inbound.ring.as_mut().map_or(0, |(_, ring)| ring.lost().into())
}

/// The name that an endpoint listens by.
fn name(scope: u32, (nic, endpoint): Key) -> String {
    format!("earmark-mx/shm/{scope}/{nic}/{endpoint}")
}

/// An endpoint as a number of 56 bits.
fn number((nic, endpoint): Key) -> u64 {
    let [a, b, c, d, e, f] = nic.0;
    u64::from_be_bytes([0, a, b, c, d, e, f, endpoint])
}

/// A socket that listens, and an epoll that watches it.
fn listen_as(network: &Network, name: &str) -> io::Result<(OwnedFd, OwnedFd)> {
    let listener = network.socket()?;
    bind(&listener, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    listen(&listener, BACKLOG)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), flags)?;
    Ok((listener, epoll))
}
