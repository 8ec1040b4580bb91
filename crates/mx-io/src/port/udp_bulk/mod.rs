//! A port that sends the bulk of large messages over UDP, and all other frames over Ethernet.
//!
//! A packet socket passes each frame of up to 1500 bytes through the kernel by itself. Consecutive
//! datagrams pass through it as one, for a third of the time (`UDP_SEGMENT`; many NICs split them
//! in hardware), and arrive as one where the kernel or the NIC merges them again. Short messages
//! and frames that a host waits for gain nothing from IP. So only the replies of a large message
//! without a mark go over UDP; the last reply, which may be marked, goes over Ethernet.
//!
//! ```text
//!   bytes   0 ─ 5          6       7          8 ...
//!           NIC of sender  kind 0  endpoint   a frame, from its type on
//!           NIC of sender  kind    endpoint   nonce (8): 1 invite, 2 probe, 3 open
//! ```
//!
//! # How a path opens
//!
//! A sender with such a frame asks the peer by Ethernet, with its own UDP address and a nonce;
//! meanwhile the frames go over Ethernet. The peer sends *invite* to that address, with the nonce.
//! The sender answers it with *probe* to where it came from, and the peer answers that with *open*.
//! So a path is used only if datagrams pass both ways, and only towards a peer that can read the
//! interface. It is probed again while it is used, and closed after a second without an answer:
//! a firewall, or a peer without UDP, costs one question a second. The two directions are
//! independent.
//!
//! A datagram names the NIC it comes from, as an Ethernet frame does, and is trusted as much: the
//! tokens of MX tell which frames belong to a connection.
//!
//! A spinning thread reads the UDP socket only while it expects something there, since that takes a
//! system call. A sleeping thread sleeps on both descriptors.

mod paths;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use ::mx::wire::{FLAG_ASK, FLAG_MARK, FrameType};
use base::time::Instant;
use rustix::io::Errno;

use super::inbox::{Inbox, MESSAGES};
use super::outbox::Outbox;
use super::{
    ENDPOINT_AT, Identity, LATER, NicId, Outgoing, Port, PortCounters, PortError, Room, TakeFrame,
    Transmitted, WriteFrame, check_mtu, endpoint_of, in_turns, socket,
};
use paths::{Key, Paths};
use sys::clock;

/// The type of the frame that asks for a path; MX has none of this number.
const ASK: u8 = 64;
/// Its length: type, flags, endpoint, own endpoint, address, UDP port, two bytes of nothing, nonce.
const ASK_LENGTH: usize = 20;

/// Bytes before a frame in a datagram.
const PREFIX: usize = 8;
/// Bytes of the headers of IPv4 and UDP.
const IP_AND_UDP: usize = 28;

/// What a datagram is for.
const FRAME: u8 = 0;
const INVITE: u8 = 1;
const PROBE: u8 = 2;
const OPEN: u8 = 3;

/// For how many vain looks after the last sign of a large message a spinning thread still looks:
/// some milliseconds.
const WARM: u32 = 10_000;
/// How often it looks otherwise, since peers may ask at any time: every so many times.
const COLD: u32 = 64;

/// Memory for datagrams, in bytes: some 90 messages of 64 KiB.
const ROOM: usize = 8 << 20;

/// A port with a UDP path beside it.
pub struct UdpBulkPort<P> {
    outer: P,
    bulk: Bulk,
    bulk_first: bool,
}

struct Bulk {
    own: Key,
    address: SocketAddrV4,
    socket: UdpSocket,
    outbox: Outbox,
    inbox: Inbox,
    mtu: u16,
    paths: Paths,
    /// Frames that ask, which have not left.
    asks: Vec<(Key, u64)>,
    /// Whether the socket takes no more for now.
    is_full: bool,
    /// The time, once somebody had to know it in this call.
    now: Option<Instant>,
    warm: u32,
    looks: u32,
    counters: PortCounters,
}

impl<P: Port> std::fmt::Debug for UdpBulkPort<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let own = self.bulk.own;
        f.debug_struct("UdpBulkPort").field("own", &own).finish_non_exhaustive()
    }
}

impl<P: Port> UdpBulkPort<P> {
    /// Adds a UDP path from `address`, which is that of the interface, to a port.
    ///
    /// # Errors
    /// If the address is not of this host, or the MTU of the port too small for another header.
    pub fn new(outer: P, address: Ipv4Addr) -> Result<Self, PortError> {
        let name = format!("{address}, for large messages");
        let remedy = "use the address of the interface: ip -4 -brief address";
        let fail = PortError::system("bind a UDP socket", &name, remedy);
        let mtu = check_mtu(&name, u32::from(outer.mtu()) - (IP_AND_UDP + PREFIX) as u32)?;
        let socket = UdpSocket::bind(SocketAddrV4::new(address, 0)).map_err(&fail)?;
        socket.set_nonblocking(true).map_err(&fail)?;
        let SocketAddr::V4(address) = socket.local_addr().map_err(&fail)? else {
            return Err(fail(io::ErrorKind::AddrNotAvailable.into()));
        };
        socket::set_room(&socket, Some(ROOM), ROOM);
        let bulk = Bulk {
            own: (outer.nic_id(), outer.endpoint()),
            address,
            outbox: Outbox::new(PREFIX, mtu.into(), true),
            inbox: Inbox::new(&socket),
            socket,
            mtu,
            paths: Paths::new(),
            asks: Vec::new(),
            is_full: false,
            now: None,
            warm: 0,
            looks: 0,
            counters: PortCounters::default(),
        };
        Ok(Self { outer, bulk, bulk_first: false })
    }
}

impl<P> UdpBulkPort<P> {
    /// Where datagrams come.
    #[must_use]
    pub fn udp_address(&self) -> SocketAddrV4 {
        self.bulk.address
    }
}

impl<P: Port> Port for UdpBulkPort<P> {
    fn identity(&self) -> Identity {
        Identity { mtu: self.bulk.mtu, ..self.outer.identity() }
    }

    fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError> {
        let Self { outer, bulk, .. } = self;
        let mtu = usize::from(bulk.mtu);
        bulk.now = None;
        bulk.flush();
        let outcome = outer.transmit(&mut |frame| {
            loop {
                if let Some(ask) = bulk.asks.pop() {
                    return Some(bulk.ask(ask, frame));
                }
                let Some(outgoing) = write(&mut frame[..mtu]) else {
                    // It may have been the first for somebody.
                    let ask = bulk.asks.pop()?;
                    return Some(bulk.ask(ask, frame));
                };
                if !bulk.try_send(&frame[..outgoing.length.min(mtu)], outgoing) {
                    return Some(outgoing);
                }
            }
        })?;
        bulk.flush();
        Ok(if bulk.is_full { Transmitted::Full(Room::Later(LATER)) } else { outcome })
    }

    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
        let Self { outer, bulk, bulk_first } = self;
        let is_due = bulk.is_due();
        let mut look = |by_udp, budget| {
            if by_udp {
                return bulk.receive(budget, take);
            }
            outer.receive(budget, &mut |from, frame| match frame.first() {
                Some(&ASK) => bulk.on_ask(frame),
                _ => take(from, frame),
            })
        };
        if is_due { in_turns(bulk_first, budget, look) } else { look(false, budget) }
    }

    fn arm(&mut self) -> Result<bool, PortError> {
        // The UDP socket is readable for as long as there is a datagram.
        self.outer.arm()
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.outer.readiness()
    }

    fn more_readiness(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = self.outer.more_readiness();
        all.push(self.bulk.socket.as_fd());
        all
    }

    fn clear(&mut self) -> Result<(), PortError> {
        // Nobody knows which of them it was.
        self.bulk.looks = COLD;
        self.outer.clear()
    }

    fn counters(&mut self) -> PortCounters {
        self.bulk.counters.overrun = socket::dropped(self.bulk.socket.as_fd());
        self.outer.counters().and(self.bulk.counters)
    }
}

impl Bulk {
    /// Whether to look at the socket this time.
    fn is_due(&mut self) -> bool {
        self.looks += 1;
        if self.warm == 0 && self.looks < COLD {
            return false;
        }
        self.looks = 0;
        true
    }

    /// Sends a frame over UDP if it is one of those, and if there is a path; whether it did.
    fn try_send(&mut self, frame: &[u8], outgoing: Outgoing) -> bool {
        const PULL: u8 = FrameType::Pull as u8;
        const REPLY: u8 = FrameType::Reply as u8;
        match frame {
            [PULL, ..] => {
                self.warm = WARM;
                false
            }
            // The last one tells that all are there, so it must not overtake them.
            [REPLY, flags, ..] if flags & (FLAG_MARK | FLAG_ASK) != 0 => {
                self.flush();
                false
            }
            [REPLY, ..] => self.enqueue((outgoing.to, outgoing.endpoint), frame),
            _ => false,
        }
    }

    /// Sends a frame if there is a path to this peer.
    fn enqueue(&mut self, peer: Key, frame: &[u8]) -> bool {
        let now = *self.now.get_or_insert_with(clock::now);
        let route = self.paths.route(peer, now);
        self.asks.extend(route.asks.map(|nonce| (peer, nonce)));
        let Some(to) = route.to else { return false };
        if let Some(nonce) = route.probes {
            self.send_control(PROBE, nonce, to);
        }
        if self.is_full || self.outbox.vacant().is_none() {
            self.flush();
        }
        if self.is_full {
            return false;
        }
        let Some(room) = self.outbox.vacant() else { return false };
        let (prefix, rest) = room.split_at_mut(PREFIX);
        prefix.copy_from_slice(&prefix_of(self.own, FRAME));
        rest[..frame.len()].copy_from_slice(frame);
        self.outbox.push_to(PREFIX + frame.len(), to);
        true
    }

    /// Hands over what is in the outbox, as far as possible.
    fn flush(&mut self) {
        self.is_full = false;
        let frames = self.counters.frames_out;
        while let Err(errno) = self.outbox.send(self.socket.as_fd(), &mut self.counters) {
            if matches!(errno, Errno::AGAIN | Errno::NOBUFS) {
                self.counters.full += 1;
                self.is_full = true;
                break;
            }
            // The error is about this address alone. Lost frames are asked for again.
            self.outbox.skip();
            self.counters.refused += 1;
        }
        self.counters.udp_bulk_out += self.counters.frames_out - frames;
    }

    /// Writes the frame that asks a peer for a path.
    fn ask(&self, ((to, endpoint), nonce): (Key, u64), frame: &mut [u8]) -> Outgoing {
        frame[..ASK_LENGTH].fill(0);
        frame[0] = ASK;
        frame[ENDPOINT_AT] = endpoint;
        frame[3] = self.own.1;
        frame[4..8].copy_from_slice(&self.address.ip().octets());
        frame[8..10].copy_from_slice(&self.address.port().to_be_bytes());
        frame[12..20].copy_from_slice(&nonce.to_be_bytes());
        Outgoing { to, endpoint, marked: false, length: ASK_LENGTH }
    }

    /// Answers such a frame with an invitation.
    fn on_ask(&mut self, frame: &[u8]) {
        let Some(&[_, _, _, _, a, b, c, d, high, low, _, _, ref nonce @ ..]) =
            frame.first_chunk::<ASK_LENGTH>()
        else {
            self.counters.strange += 1;
            return;
        };
        let to = SocketAddrV4::new([a, b, c, d].into(), u16::from_be_bytes([high, low]));
        self.send_control(INVITE, u64::from_be_bytes(*nonce), to);
    }

    /// Sends a datagram without a frame; if it is lost, the next question repeats it.
    fn send_control(&self, kind: u8, nonce: u64, to: SocketAddrV4) {
        let mut datagram = [0; PREFIX + 8];
        datagram[..PREFIX].copy_from_slice(&prefix_of(self.own, kind));
        datagram[PREFIX..].copy_from_slice(&nonce.to_be_bytes());
        let _ = self.socket.send_to(&datagram, to);
    }

    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
        let mut seen = 0;
        while seen < budget {
            self.counters.calls_in += 1;
            let wanted = (budget - seen).min(MESSAGES);
            // An error is of an address, and of what was sent to it.
            let Ok(came) = self.inbox.receive(self.socket.as_fd(), wanted) else { break };
            for number in 0..came {
                seen += self.handle_message(number, take);
            }
            if came < wanted {
                break;
            }
        }
        self.warm = if seen > 0 { WARM } else { self.warm.saturating_sub(1) };
        // A message may have more frames than were asked for.
        Ok(seen.min(budget))
    }

    /// Handles a message of the last batch; how many datagrams it has.
    fn handle_message(&mut self, number: usize, take: &mut TakeFrame<'_>) -> usize {
        let message = self.inbox.message(number);
        let (mut seen, mut control) = (0, None);
        if message.is_empty() {
            self.counters.strange += 1;
        }
        for datagram in message.datagrams() {
            seen += 1;
            match read(datagram) {
                Some((_, FRAME, frame)) if frame.len() > self.mtu.into() => {
                    self.counters.too_long += 1;
                }
                // Only replies are sent over UDP, so only replies are accepted.
                Some(((nic, _), FRAME, frame))
                    if frame.first() == Some(&(FrameType::Reply as u8))
                        && endpoint_of(frame) == Some(self.own.1) =>
                {
                    self.counters.came(frame.len());
                    self.counters.udp_bulk_in += 1;
                    take(nic, frame);
                }
                Some((peer, kind, nonce)) if kind != FRAME && nonce.len() == 8 => {
                    control = nonce.try_into().ok().map(|nonce| (peer, kind, nonce));
                }
                _ => self.counters.strange += 1,
            }
        }
        let from = message.from;
        if let Some((peer, kind, nonce)) = control {
            self.on_control(peer, kind, u64::from_be_bytes(nonce), from);
        }
        seen
    }

    fn on_control(&mut self, peer: Key, kind: u8, nonce: u64, from: SocketAddrV4) {
        match kind {
            INVITE if self.paths.on_invite(peer, nonce, from) => {
                self.send_control(PROBE, nonce, from);
            }
            PROBE => self.send_control(OPEN, nonce, from),
            OPEN => self.paths.on_open(clock::now(), peer, nonce, from),
            _ => self.counters.strange += 1,
        }
    }
}

/// What a datagram begins with.
fn prefix_of((NicId([a, b, c, d, e, f]), endpoint): Key, kind: u8) -> [u8; PREFIX] {
    [a, b, c, d, e, f, kind, endpoint]
}

/// Who sent a datagram, what it is for, and the rest.
fn read(datagram: &[u8]) -> Option<(Key, u8, &[u8])> {
    let (&[a, b, c, d, e, f, kind, endpoint], rest) = datagram.split_first_chunk::<PREFIX>()?;
    Some(((NicId([a, b, c, d, e, f]), endpoint), kind, rest))
}
