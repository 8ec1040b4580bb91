//! Connections between endpoints of a host: how a ring gets from one process to the other, and how
//! either learns that the other is gone.
//!
//! A connection is a unix socket. The sender connects, and passes the ring with its greeting; it
//! need not wait for an answer, since a frame may be in the ring before the receiver has it. Later
//! the sender sends a byte as a bell, if the receiver has armed the ring. It does not use an
//! eventfd for that: one that comes from somebody else can make a write wait, while a socket can be
//! told not to. When a process ends, the kernel closes its sockets, and the other side hears of it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, connect, recv, recvmsg, send, sendmsg,
};

use super::ring::{Consumer, Producer, Shape};
use crate::port::{MAX_MTU, MIN_MTU, NicId, socket};

/// What a greeting begins with: who speaks, and in which version.
const GREETING: [u8; 8] = *b"earmark\x01";
/// Bytes of a greeting: the above, slots, bytes of a frame, NIC, endpoint, a reserved one.
const LENGTH: usize = 8 + 4 + 4 + 6 + 2;
/// The most slots of a ring.
pub(super) const MAX_SLOTS: u32 = 4096;

/// An endpoint of this host.
pub(super) type Key = (NicId, u8);

/// A connection to send through.
pub(super) struct Outbound {
    socket: OwnedFd,
    pub(super) producer: Producer,
    /// Since when its ring has been full.
    pub(super) full_since: Option<base::time::Instant>,
}

impl Outbound {
    /// Connects `socket` to the endpoint with this name; the socket comes back if there is none.
    pub(super) fn connect(
        socket: OwnedFd,
        name: &str,
        from: Key,
        shape: Shape,
    ) -> Result<Self, Option<OwnedFd>> {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(|_| None)?;
        match connect(&socket, &address) {
            Ok(()) => {}
            Err(Errno::CONNREFUSED | Errno::AGAIN) => return Err(Some(socket)),
            Err(_) => return Err(None),
        }
        if !is_trusted(socket.as_fd()) {
            return Err(None);
        }
        let producer = Producer::new(shape).map_err(|_| None)?;
        greet(&socket, from, shape, producer.file()).map_err(|_| None)?;
        Ok(Self { socket, producer, full_since: None })
    }

    /// Wakes the receiver; `false` if it is gone.
    pub(super) fn ring(&self) -> bool {
        // If there is no room for a bell, many are ringing.
        match send(&self.socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        }
    }

    /// Whether the receiver is still there; it has nothing to say.
    pub(super) fn is_alive(&self) -> bool {
        matches!(recv(&self.socket, &mut [0; 8][..], RecvFlags::DONTWAIT), Err(Errno::AGAIN))
    }
}

impl AsFd for Outbound {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A connection to receive from.
pub(super) struct Inbound {
    /// What events of it are called.
    pub(super) number: u64,
    /// `None` when the sender is gone; what it has left is still taken.
    socket: Option<OwnedFd>,
    /// `None` before the greeting.
    pub(super) ring: Option<(Key, Consumer)>,
}

impl Inbound {
    /// A connection that was accepted; `None` if the other side is a stranger.
    pub(super) fn new(number: u64, socket: OwnedFd) -> Option<Self> {
        is_trusted(socket.as_fd()).then_some(Self { number, socket: Some(socket), ring: None })
    }

    /// Reads a greeting or a bell, which is there.
    pub(super) fn read_socket(&mut self) {
        let Some(socket) = &self.socket else { return };
        if self.ring.is_none() {
            match welcome(socket) {
                Ok(ring) => self.ring = Some(ring),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.socket = None,
            }
            return;
        }
        match recv(socket, &mut [0; 8][..], RecvFlags::DONTWAIT) {
            Ok((1.., _)) | Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => self.socket = None,
        }
    }

    /// Whether nothing will ever come from it again.
    pub(super) fn is_over(&self) -> bool {
        let is_empty = self.ring.as_ref().is_none_or(|(_, ring)| !ring.is_ready());
        self.socket.is_none() && is_empty
    }
}

impl AsFd for Inbound {
    /// # Panics
    /// If the sender is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("a connection that was just accepted").as_fd()
    }
}

/// Whether the process on the other side belongs to the user of this one, or to root.
fn is_trusted(other: BorrowedFd<'_>) -> bool {
    let peer = socket::words(other, libc::SOL_SOCKET, libc::SO_PEERCRED);
    let own = rustix::process::geteuid().as_raw();
    matches!(peer, Ok([_, user, _]) if user == own || user == 0)
}

fn greet(
    socket: &OwnedFd,
    (nic, endpoint): Key,
    shape: Shape,
    file: BorrowedFd<'_>,
) -> io::Result<()> {
    let (slots, room) = (shape.slots.to_ne_bytes(), shape.room.to_ne_bytes());
    let bytes = [&GREETING[..], &slots, &room, &nic.0, &[endpoint, 0]].concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [file];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, flags)?;
    Ok(())
}

/// Reads a greeting, and maps the ring that comes with it.
fn welcome(socket: &OwnedFd) -> io::Result<(Key, Consumer)> {
    let mut bytes = [0; LENGTH + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let came = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?.bytes;
    let mut file = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut fds) = message {
            file = fds.next();
        }
    }
    let (key, shape) = parse(&bytes[..came]).ok_or(io::ErrorKind::InvalidData)?;
    let file = file.ok_or(io::ErrorKind::InvalidData)?;
    Ok((key, Consumer::adopt(file, shape)?))
}

fn parse(bytes: &[u8]) -> Option<(Key, Shape)> {
    let (greeting, rest) = bytes.split_first_chunk()?;
    let (slots, rest) = rest.split_first_chunk()?;
    let (room, rest) = rest.split_first_chunk()?;
    let (nic, rest) = rest.split_first_chunk()?;
    let (slots, room) = (u32::from_ne_bytes(*slots), u32::from_ne_bytes(*room));
    let [endpoint, _reserved] = *rest else { return None };
    let possible = *greeting == GREETING
        && slots.is_power_of_two()
        && slots <= MAX_SLOTS
        && (u32::from(MIN_MTU)..=MAX_MTU.into()).contains(&room);
    possible.then_some(((NicId(*nic), endpoint), Shape { slots, room }))
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    const SHAPE: Shape = Shape { slots: 8, room: 1500 };
    const KEY: Key = (NicId([2; 6]), 7);

    fn pair() -> (OwnedFd, Inbound) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (a, b) = socketpair(kind.0, kind.1, flags, None).unwrap();
        (a, Inbound::new(1, b).unwrap())
    }

    #[test]
    fn ring_comes_with_the_greeting() {
        let (a, mut inbound) = pair();
        inbound.read_socket();
        assert!(inbound.ring.is_none() && !inbound.is_over(), "it may come later");
        let mut producer = Producer::new(SHAPE).unwrap();
        assert!(producer.push(&[7; 60]));
        greet(&a, KEY, SHAPE, producer.file()).unwrap();
        inbound.read_socket();
        assert_eq!(inbound.ring.as_ref().unwrap().0, KEY);
        drop((a, producer));
        inbound.read_socket();
        assert!(!inbound.is_over(), "what the sender has left is taken");
        let (_, ring) = inbound.ring.as_mut().unwrap();
        assert_eq!(ring.pop(&mut [0; 1500]), super::super::ring::Next::Frame(60));
        assert!(inbound.is_over());
    }

    #[test]
    fn other_greetings_end_the_connection() {
        let (a, mut inbound) = pair();
        // Without a ring.
        send(&a, &[0; LENGTH], SendFlags::empty()).unwrap();
        inbound.read_socket();
        assert!(inbound.is_over());
        // With something that is none.
        let (a, mut inbound) = pair();
        let (pipe, _end) = rustix::pipe::pipe().unwrap();
        greet(&a, KEY, SHAPE, pipe.as_fd()).unwrap();
        inbound.read_socket();
        assert!(inbound.is_over());
        // With one that is smaller than it says.
        let (a, mut inbound) = pair();
        let small = Producer::new(SHAPE).unwrap();
        greet(&a, KEY, Shape { slots: 1024, ..SHAPE }, small.file()).unwrap();
        inbound.read_socket();
        assert!(inbound.is_over());
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let bytes = |slots: u32, room: u32| {
            let (slots, room) = (slots.to_ne_bytes(), room.to_ne_bytes());
            [&GREETING[..], &slots, &room, &[2; 6], &[7, 0]].concat()
        };
        let good = bytes(8, 1500);
        assert_eq!(parse(&good), Some((KEY, SHAPE)));
        for bad in [bytes(0, 1500), bytes(7, 1500), bytes(8192, 1500), bytes(8, 0)] {
            assert_eq!(parse(&bad), None);
        }
        assert_eq!(parse(&bytes(8, u32::MAX)), None);
        assert_eq!((parse(&good[..LENGTH - 1]), parse(&[&good[..], &[0]].concat())), (None, None));
    }
}
