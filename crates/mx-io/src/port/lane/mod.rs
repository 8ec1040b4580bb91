//! A port with a lane beside it: frames of large messages go in datagrams, all others through an
//! Ethernet interface.
//!
//! A packet socket hands every frame of its own through the kernel: 1500 bytes at a time. Datagrams
//! in a row go through it as one, for a third of the time (`UDP_SEGMENT`; many NICs take them apart
//! by themselves), and come as one where the kernel or the NIC puts them together again. What is
//! short, and what somebody waits for, is better off without IP: so of a large message, the frames
//! that nobody asked to be told of go by the lane, and the last one, which may be marked, does not.
//!
//! ```text
//!   bytes   0 ─ 5          6       7          8 ...
//!           NIC of sender  kind 0  endpoint   a frame, from its type on
//!           NIC of sender  kind    endpoint   nonce (8): 1 invite, 2 probe, 3 open
//! ```
//!
//! # Is there a lane?
//!
//! Whoever has such a frame for a peer asks it, by Ethernet, and tells its own address and a nonce;
//! meanwhile frames go as all others do. The peer sends an invitation to that address, with
//! the nonce. It is answered with a probe to where it came from, and that with *open*. So a lane is
//! used only if datagrams have made it both ways, and only towards who can read the interface.
//! It is probed again while it is used, and given up when that is not answered for a
//! second: firewalls, or a peer that has a port without a lane, cost nothing but the question, once
//! a second. Peers need not agree: either direction has its lane or not.
//!
//! A datagram says which NIC it is from, as an Ethernet frame does, and is believed as much: the
//! tokens of MX tell what belongs to a conversation.
//!
//! One who spins looks at the lane only while it expects something there, since that takes a system
//! call; one who sleeps sleeps on both.

mod book;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use ::mx::wire::{FLAG_ASK, FLAG_MARK, FrameType};
use base::time::Instant;
use rustix::io::Errno;

use super::inbox::{Inbox, MESSAGES};
use super::outbox::Outbox;
use super::{
    ENDPOINT_AT, LATER, NicId, Outgoing, Port, PortCounters, PortError, Room, Transmitted,
    check_mtu, endpoint_of, in_turns, socket,
};
use book::{Book, Key};
use sys::clock;

/// The type of the frame that asks for a lane; MX has none of this number.
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

/// A port with a lane beside it.
pub struct LanePort<P> {
    outer: P,
    lane: Lane,
    lane_first: bool,
}

struct Lane {
    own: Key,
    address: SocketAddrV4,
    socket: UdpSocket,
    outbox: Outbox,
    inbox: Inbox,
    mtu: u16,
    book: Book,
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

impl<P: Port> std::fmt::Debug for LanePort<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let own = self.lane.own;
        f.debug_struct("LanePort").field("own", &own).finish_non_exhaustive()
    }
}

impl<P: Port> LanePort<P> {
    /// Adds a lane from `address`, which is that of the interface, to a port.
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
        let lane = Lane {
            own: (outer.nic_id(), outer.endpoint()),
            address,
            outbox: Outbox::new(PREFIX, mtu.into(), true),
            inbox: Inbox::new(&socket),
            socket,
            mtu,
            book: Book::new(),
            asks: Vec::new(),
            is_full: false,
            now: None,
            warm: 0,
            looks: 0,
            counters: PortCounters::default(),
        };
        Ok(Self { outer, lane, lane_first: false })
    }
}

impl<P> LanePort<P> {
    /// Where datagrams come.
    #[must_use]
    pub fn lane_address(&self) -> SocketAddrV4 {
        self.lane.address
    }
}

impl<P: Port> Port for LanePort<P> {
    fn nic_id(&self) -> NicId {
        self.outer.nic_id()
    }

    fn endpoint(&self) -> u8 {
        self.outer.endpoint()
    }

    fn mtu(&self) -> u16 {
        self.lane.mtu
    }

    fn transmit(
        &mut self,
        write: &mut dyn FnMut(&mut [u8]) -> Option<Outgoing>,
    ) -> Result<Transmitted, PortError> {
        let Self { outer, lane, .. } = self;
        let mtu = usize::from(lane.mtu);
        lane.now = None;
        lane.flush();
        let outcome = outer.transmit(&mut |frame| {
            loop {
                if let Some(ask) = lane.asks.pop() {
                    return Some(lane.ask(ask, frame));
                }
                let Some(outgoing) = write(&mut frame[..mtu]) else {
                    // It may have been the first for somebody.
                    let ask = lane.asks.pop()?;
                    return Some(lane.ask(ask, frame));
                };
                if !lane.takes(&frame[..outgoing.length.min(mtu)], outgoing) {
                    return Some(outgoing);
                }
            }
        })?;
        lane.flush();
        Ok(if lane.is_full { Transmitted::Full(Room::Later(LATER)) } else { outcome })
    }

    fn receive(
        &mut self,
        budget: usize,
        take: &mut dyn FnMut(NicId, &[u8]),
    ) -> Result<usize, PortError> {
        let Self { outer, lane, lane_first } = self;
        let is_due = lane.is_due();
        let mut look = |by_lane, budget| {
            if by_lane {
                return lane.receive(budget, take);
            }
            outer.receive(budget, &mut |from, frame| match frame.first() {
                Some(&ASK) => lane.asked(frame),
                _ => take(from, frame),
            })
        };
        if is_due { in_turns(lane_first, budget, look) } else { look(false, budget) }
    }

    fn arm(&mut self) -> Result<bool, PortError> {
        // The socket of the lane is readable for as long as there is a datagram.
        self.outer.arm()
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.outer.readiness()
    }

    fn more_readiness(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = self.outer.more_readiness();
        all.push(self.lane.socket.as_fd());
        all
    }

    fn clear(&mut self) -> Result<(), PortError> {
        // Nobody knows which of them it was.
        self.lane.looks = COLD;
        self.outer.clear()
    }

    fn counters(&mut self) -> PortCounters {
        self.lane.counters.overrun = socket::dropped(self.lane.socket.as_fd());
        self.outer.counters().and(self.lane.counters)
    }
}

impl Lane {
    /// Whether to look at the socket this time.
    fn is_due(&mut self) -> bool {
        self.looks += 1;
        if self.warm == 0 && self.looks < COLD {
            return false;
        }
        self.looks = 0;
        true
    }

    /// Whether a frame goes by the lane; then it is on its way.
    fn takes(&mut self, frame: &[u8], outgoing: Outgoing) -> bool {
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
            [REPLY, ..] => self.offer((outgoing.to, outgoing.endpoint), frame),
            _ => false,
        }
    }

    /// Sends a frame if there is a lane to this peer.
    fn offer(&mut self, peer: Key, frame: &[u8]) -> bool {
        let now = *self.now.get_or_insert_with(clock::now);
        let route = self.book.route(peer, now);
        self.asks.extend(route.asks.map(|nonce| (peer, nonce)));
        let Some(to) = route.to else { return false };
        if let Some(nonce) = route.probes {
            self.say(PROBE, nonce, to);
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
            // Of this address alone. What is lost is asked for again, and so is the lane.
            self.outbox.skip();
            self.counters.refused += 1;
        }
        self.counters.lane_out += self.counters.frames_out - frames;
    }

    /// Writes the frame that asks a peer for a lane.
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
    fn asked(&mut self, frame: &[u8]) {
        let Some(&[_, _, _, _, a, b, c, d, high, low, _, _, ref nonce @ ..]) =
            frame.first_chunk::<ASK_LENGTH>()
        else {
            self.counters.strange += 1;
            return;
        };
        let to = SocketAddrV4::new([a, b, c, d].into(), u16::from_be_bytes([high, low]));
        self.say(INVITE, u64::from_be_bytes(*nonce), to);
    }

    /// Sends a datagram without a frame; one that is lost is sent again by and by.
    fn say(&self, kind: u8, nonce: u64, to: SocketAddrV4) {
        let mut datagram = [0; PREFIX + 8];
        datagram[..PREFIX].copy_from_slice(&prefix_of(self.own, kind));
        datagram[PREFIX..].copy_from_slice(&nonce.to_be_bytes());
        let _ = self.socket.send_to(&datagram, to);
    }

    fn receive(
        &mut self,
        budget: usize,
        take: &mut dyn FnMut(NicId, &[u8]),
    ) -> Result<usize, PortError> {
        let mut seen = 0;
        while seen < budget {
            self.counters.calls_in += 1;
            let wanted = (budget - seen).min(MESSAGES);
            // An error is of an address, and of what was sent to it.
            let Ok(came) = self.inbox.receive(self.socket.as_fd(), wanted) else { break };
            for number in 0..came {
                seen += self.sort(number, take);
            }
            if came < wanted {
                break;
            }
        }
        self.warm = if seen > 0 { WARM } else { self.warm.saturating_sub(1) };
        // A message may have more frames than were asked for.
        Ok(seen.min(budget))
    }

    /// Sorts out a message of the last batch: how many datagrams it has.
    fn sort(&mut self, number: usize, take: &mut dyn FnMut(NicId, &[u8])) -> usize {
        let message = self.inbox.message(number);
        let (mut seen, mut said) = (0, None);
        if message.is_empty() {
            self.counters.strange += 1;
        }
        for datagram in message.datagrams() {
            seen += 1;
            match read(datagram) {
                Some((_, FRAME, frame)) if frame.len() > self.mtu.into() => {
                    self.counters.too_long += 1;
                }
                // Nothing but what is sent by the lane is taken from it.
                Some(((nic, _), FRAME, frame))
                    if frame.first() == Some(&(FrameType::Reply as u8))
                        && endpoint_of(frame) == Some(self.own.1) =>
                {
                    self.counters.came(frame.len());
                    self.counters.lane_in += 1;
                    take(nic, frame);
                }
                Some((peer, kind, nonce)) if kind != FRAME && nonce.len() == 8 => {
                    said = nonce.try_into().ok().map(|nonce| (peer, kind, nonce));
                }
                _ => self.counters.strange += 1,
            }
        }
        let from = message.from;
        if let Some((peer, kind, nonce)) = said {
            self.answer(peer, (kind, u64::from_be_bytes(nonce)), from);
        }
        seen
    }

    fn answer(&mut self, peer: Key, (kind, nonce): (u8, u64), from: SocketAddrV4) {
        match kind {
            INVITE if self.book.invited(peer, nonce, from) => self.say(PROBE, nonce, from),
            PROBE => self.say(OPEN, nonce, from),
            OPEN => self.book.opened(peer, (nonce, from), clock::now()),
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
