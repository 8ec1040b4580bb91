//! Frames through an Ethernet interface: a packet socket with EtherType 0x86df.
//!
//! Frames that come are seen in a ring that is shared with the kernel (`ring.rs`), so one who spins
//! needs no system call. The kernel queues only those for this address and endpoint (`filter.rs`).
//!
//! Frames of large messages have a socket and a ring of their own, on which no thread sleeps:
//! waking one for each costs more than the frame itself, and helps no one. The last of those that
//! were asked for comes through the first socket, too, where it only wakes who sleeps there. The
//! kernel serves the socket first that was bound last; so when the signal is seen the frame is
//! there.
//!
//! Frames that go are copied by one system call for up to 64 of them, past the queueing discipline
//! of the interface, which is there for traffic that does not pace itself. A shared ring in this
//! direction costs more: the kernel has to keep pages of it alive while a frame is under way.
//!
//! An interface without a carrier takes no frames. The port needs `CAP_NET_RAW` in the network
//! namespace of its interface, only to be opened, and stays there wherever it is used afterwards.

mod filter;
mod packet_socket;
mod ring;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ::mx::wire::{ETHER_TYPE, FrameType};
use rustix::io::Errno;
use rustix::net::netdevice::index_to_name;

use super::name::REMEDY;
use super::outbox::Outbox;
use super::{
    Claim, Identity, LATER, MAX_MTU, NicId, Port, PortCounters, PortError, Room, TakeFrame,
    Transmitted, WriteFrame, check_mtu, in_turns, socket,
};
use filter::Class;
use packet_socket::PacketSocket;
use ring::{Ring, Slot};
use sys::netlink::Netlink;
use sys::option;

const HEADER: usize = 14;
/// What may wait to be sent, in bytes: more than the frames of a system call.
const SEND_ROOM: usize = 4 << 20;
/// Memory of each ring, in bytes: for some 2,600 frames of 1500 bytes, or 400 of 9000.
const RING: usize = 4 << 20;

/// A port on an Ethernet interface.
pub struct PacketPort {
    name: String,
    index: u32,
    nic: NicId,
    endpoint: u8,
    mtu: u16,
    /// Before the socket, so that it goes first.
    ring: Ring,
    socket: PacketSocket,
    /// As both of them, for the frames of large messages, which wake no thread.
    replies: Ring,
    reply_socket: PacketSocket,
    /// Which ring is received from first.
    replies_first: bool,
    outbox: Outbox,
    counters: PortCounters,
    _claim: Claim,
}

impl PacketPort {
    /// Opens `endpoint` of an interface in the network of this thread. The interface is up.
    ///
    /// # Errors
    /// If there is no such interface, it is down or not of Ethernet, the endpoint is taken, or the
    /// caller lacks `CAP_NET_RAW`.
    pub fn open(interface: &str, endpoint: u8) -> Result<Self, PortError> {
        let link = Netlink::open()?.link(interface)?;
        let Ok(mac) = link.mac.as_slice().try_into() else {
            return Err(PortError::NotEthernet { port: interface.to_owned() });
        };
        if !link.is_up {
            let port = interface.to_owned();
            return Err(PortError::Down { operation: "open a port", port });
        }
        let nic = NicId(mac);
        // Some interfaces, such as the loopback, have more than MX uses.
        let mtu = check_mtu(interface, link.mtu.min(MAX_MTU.into()))?;
        let claim = Claim::new(interface, link.index, endpoint)?;
        let open = |class| -> Result<(Ring, PacketSocket), PortError> {
            let socket = open_socket(interface)?;
            let remedy = "is CONFIG_PACKET in the kernel? zgrep CONFIG_PACKET= /proc/config.gz";
            // Filter and ring first, then the interface: so no frame is queued that is for others.
            let ring = filter::attach(socket.as_fd(), nic, endpoint, class)
                .and_then(|()| Ring::new(socket.as_fd(), mtu.into(), RING))
                .and_then(|ring| set_up(socket.as_fd(), link.index).map(|()| ring))
                .map_err(PortError::system("set up a packet socket", interface, remedy))?;
            Ok((ring, PacketSocket::new(socket)))
        };
        // In this order.
        let (ring, socket) = open(Class::Prompt)?;
        let (replies, reply_socket) = open(Class::Replies)?;
        Ok(Self {
            name: interface.to_owned(),
            index: link.index,
            nic,
            endpoint,
            mtu,
            ring,
            socket,
            replies,
            reply_socket,
            replies_first: false,
            outbox: Outbox::new(HEADER, mtu.into(), false),
            counters: PortCounters::default(),
            _claim: claim,
        })
    }

    /// The index of its interface.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Writes frames into the outbox while there is room; whether there are no more.
    fn fill(&mut self, write: &mut WriteFrame<'_>) -> bool {
        while let Some(frame) = self.outbox.vacant() {
            let Some(outgoing) = write.next(&mut frame[HEADER..]) else { return true };
            frame[..6].copy_from_slice(&outgoing.to.0);
            frame[6..12].copy_from_slice(&self.nic.0);
            frame[12..HEADER].copy_from_slice(&ETHER_TYPE.to_be_bytes());
            self.outbox.push(HEADER + outgoing.length);
        }
        false
    }

    /// Hands frames of one ring to `take`, so many at most; how many it looked at.
    fn look(&mut self, replies: bool, budget: usize, take: &mut TakeFrame<'_>) -> usize {
        let (counters, mtu) = (&mut self.counters, usize::from(self.mtu));
        let ring = if replies { &mut self.replies } else { &mut self.ring };
        for came in 0..budget {
            let seen = ring.take(|slot| match slot {
                Slot::Frame(frame) if !replies && is_signal(frame) => {}
                Slot::Frame(frame) if frame.len() <= HEADER + mtu => match sender(frame) {
                    Some((from, frame)) => {
                        counters.came(frame.len());
                        take.take(from, frame);
                    }
                    None => counters.strange += 1,
                },
                Slot::Frame(_) | Slot::Cut => counters.too_long += 1,
            });
            if seen.is_none() {
                return came;
            }
        }
        budget
    }

    fn refused(&mut self, errno: Errno) -> Result<Transmitted, PortError> {
        let room = match errno {
            Errno::AGAIN => Room::Writable,
            // The queue of the interface is full, or the other end of a veth.
            Errno::NOBUFS => Room::Later(LATER),
            Errno::MSGSIZE => {
                self.outbox.skip();
                self.counters.refused += 1;
                return Err(PortError::Shrunk { port: self.name.clone(), mtu: self.mtu });
            }
            errno => return Err(self.broken("send", errno)),
        };
        self.counters.full += 1;
        Ok(Transmitted::Full(room))
    }

    fn broken(&self, operation: &'static str, errno: Errno) -> PortError {
        let port = self.name.clone();
        // An interface that goes away goes down first, and the kernel tells of that.
        let exists = index_to_name(&self.socket, self.index).is_ok();
        match errno {
            Errno::NXIO | Errno::NODEV => PortError::Gone { operation, port },
            Errno::NETDOWN if exists => PortError::Down { operation, port },
            Errno::NETDOWN => PortError::Gone { operation, port },
            errno => {
                let remedy = "look at the interface: ip -statistics link";
                PortError::System { operation, port, cause: errno.into(), remedy }
            }
        }
    }
}

impl Port for PacketPort {
    fn identity(&self) -> Identity {
        Identity { nic: self.nic, endpoint: self.endpoint, mtu: self.mtu, host_bytes: 6 }
    }

    fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError> {
        loop {
            // What the kernel refused goes first.
            let last = self.outbox.is_empty() && self.fill(write);
            if let Err(errno) = self.outbox.send(self.socket.as_fd(), &mut self.counters) {
                return self.refused(errno);
            }
            if last {
                return Ok(Transmitted::Drained);
            }
        }
    }

    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
        // As most of the time, for one who looks again and again.
        if !self.ring.is_ready() && !self.replies.is_ready() {
            return Ok(0);
        }
        let mut replies_first = self.replies_first;
        let look = |replies, most| Ok(self.look(replies, most, take));
        let came = in_turns(&mut replies_first, budget, look);
        self.replies_first = replies_first;
        came
    }

    fn arm(&mut self) -> Result<bool, PortError> {
        // The socket is readable for as long as there is a frame in the ring. No thread need stay
        // awake for a quiet one.
        Ok(self.ring.is_ready())
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn clear(&mut self) -> Result<(), PortError> {
        // The reason was a frame. An error stays until it is asked for.
        if self.ring.is_ready() {
            return Ok(());
        }
        self.counters.calls_in += 1;
        socket::error(&self.socket).map_err(|errno| self.broken("receive", errno))
    }

    fn counters(&mut self) -> PortCounters {
        // Packets and drops since this was last asked.
        let statistics = libc::PACKET_STATISTICS;
        for socket in [&self.socket, &self.reply_socket] {
            if let Ok([_, drops]) = option::words(socket, libc::SOL_PACKET, statistics) {
                self.counters.overrun += u64::from(drops);
            }
        }
        self.counters
    }
}

/// Whether a frame of the first ring is there to wake a thread: it is in the second, too.
fn is_signal(frame: &[u8]) -> bool {
    let [high, low] = ETHER_TYPE.to_be_bytes();
    frame.get(12..15).is_some_and(|kind| kind == [high, low, FrameType::Reply as u8])
}

/// The sender of a frame, and what follows its EtherType; `None` if it is not one of ours.
fn sender(frame: &[u8]) -> Option<(NicId, &[u8])> {
    let from: [u8; 6] = frame.get(6..12)?.try_into().ok()?;
    let rest = match frame.get(12..14)? {
        [0x81, 0x00] => frame.get(16..)?,
        _ => &frame[12..],
    };
    let (ether_type, body) = rest.split_at_checked(2)?;
    // A group sends nothing.
    (ether_type == ETHER_TYPE.to_be_bytes() && from[0] & 1 == 0).then_some((NicId(from), body))
}

fn open_socket(interface: &str) -> Result<OwnedFd, PortError> {
    // Nothing comes before the filter and the ring are there.
    sys::packet::unbound().map_err(|errno| match errno {
        Errno::PERM | Errno::ACCESS => {
            PortError::NotAllowed { port: interface.to_owned(), cause: errno.into() }
        }
        errno => PortError::system("open a packet socket", interface, REMEDY)(errno.into()),
    })
}

/// Past the queueing discipline, with room to send, onto the interface.
fn set_up(socket: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    option::set_int(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
    socket::set_room(socket, None, SEND_ROOM);
    sys::packet::bind(socket, index, ETHER_TYPE)
}
