//! Connections between endpoints of a host: how a ring gets from one process to the other, and how
//! either learns that the other is gone.
//!
//! A connection is a unix socket. The sender connects, and passes the ring with its greeting; it
//! need not wait for an answer, since a frame may be in the ring before the receiver has it. Later
//! the sender sends a byte as a bell, if the receiver has armed the ring. It does not use an
//! eventfd for that: one that comes from another process can make a write wait, while a socket
//! need not. When a process ends, the kernel closes its sockets, and the other side hears of
//! it.
//!
//! A receiver that has a connection to the sender, too, answers: from then on long frames may come.
//! With the answer come its [calls](super::calls), and which of them is the sender's.
//! The greeting says where in the sender's memory a random number is. A receiver that can read it
//! there may be referred to data, and the answer says so; it takes that back if it finds some that
//! it cannot read.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, connect, recv, recvmsg, send, sendmsg,
};

use super::calls::Calls;
use super::remote::Remote;
use super::ring::{Consumer, Producer, Wake, is_possible};
use crate::port::{Address, NicId, Reference};
use sys::peer::Credentials;

/// What a greeting begins with: who speaks, and in which version.
const GREETING: [u8; 8] = *b"earmark\x03";
/// Bytes of a greeting: the above, where a number is and which one, lines of the ring, NIC,
/// endpoint, a reserved one.
const LENGTH: usize = 8 + 8 + 8 + 4 + 6 + 2;
/// What a receiver answers: it reads the memory of the sender, or does not.
const READS: u8 = 1;
const READS_NOT: u8 = 0;
/// Bytes of the answer: that, and the number by which the sender calls.
const ANSWER: usize = 1 + 2;
const ANSWERS: usize = 8;

pub(super) struct Outbound {
    pub(super) to: Address,
    socket: OwnedFd,
    pub(super) producer: Producer,
    pub(super) full_since: Option<base::time::Instant>,
    /// What the receiver has answered: whether it reads the memory of this process.
    pub(super) is_read: Option<bool>,
    /// How it is called, and by which number; `None` before it has answered.
    calls: Option<(Calls, u16)>,
    /// What it reads first.
    _number: Box<u64>,
}

impl Outbound {
    /// Connects `socket` to the endpoint with this name, with a ring of so many lines; the socket
    /// comes back if there is no such endpoint.
    pub(super) fn connect(
        socket: OwnedFd,
        name: &str,
        (from, to): (Address, Address),
        lines: u32,
    ) -> Result<Self, Option<OwnedFd>> {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(|_| None)?;
        match connect(&socket, &address) {
            Ok(()) => {}
            Err(Errno::CONNREFUSED | Errno::AGAIN) => return Err(Some(socket)),
            Err(_) => return Err(None),
        }
        trusted_process(socket.as_fd()).ok_or(None)?;
        let producer = Producer::new(lines).map_err(|_| None)?;
        let number = Box::new(sys::seed::seed());
        let greeting = Greeting { from, lines, number: (&raw const *number as u64, *number) };
        greet(&socket, &greeting, producer.file()).map_err(|_| None)?;
        Ok(Self {
            to,
            socket,
            producer,
            full_since: None,
            is_read: None,
            calls: None,
            _number: number,
        })
    }

    /// Wakes the receiver if that is necessary: whether it was rung for, and whether it is there.
    pub(super) fn wake(&self) -> (bool, bool) {
        let rings = match (self.producer.wake(), &self.calls) {
            (None, _) => false,
            (Some(Wake::Call), Some((calls, number))) => calls.call(*number),
            _ => true,
        };
        (rings, !rings || self.ring())
    }

    /// Rings; `false` if the receiver is gone.
    fn ring(&self) -> bool {
        // If there is no room for a bell, many are ringing.
        match send(&self.socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        }
    }

    pub(super) fn is_alive(&mut self) -> bool {
        // One who talks without end is heard the next time.
        for _ in 0..ANSWERS {
            let mut said = [0; ANSWER];
            match receive(&self.socket, &mut said) {
                Ok((1.., file)) => self.note_answer(said, file),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Ok(_) | Err(_) => return false,
            }
        }
        true
    }

    fn note_answer(&mut self, said: [u8; ANSWER], file: Option<OwnedFd>) {
        let [reads, number @ ..] = said;
        self.is_read = Some(reads == READS);
        if self.calls.is_none() {
            let calls = file.and_then(|file| Calls::adopt(file).ok());
            self.calls = calls.map(|calls| (calls, u16::from_ne_bytes(number)));
        }
    }
}

impl AsFd for Outbound {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

pub(super) struct Inbound {
    /// What events of it are called.
    pub(super) number: u64,
    /// `None` when the sender is gone; what it has left is still taken.
    socket: Option<OwnedFd>,
    /// The memory of the sender, if it is to be read.
    remote: Option<Remote>,
    /// `None` before the greeting.
    pub(super) ring: Option<(Address, Consumer)>,
    pub(super) call: u16,
    /// How often in a row nothing was there.
    pub(super) vain: u32,
}

impl Inbound {
    /// A connection that was accepted; `None` if the other side is a stranger. Its memory is read
    /// if `reads`.
    pub(super) fn new(number: u64, socket: OwnedFd, call: u16, reads: bool) -> Option<Self> {
        let process = trusted_process(socket.as_fd())?;
        let remote = reads.then(|| Remote::of(process));
        Some(Self { number, socket: Some(socket), remote, ring: None, call, vain: 0 })
    }

    /// Reads a greeting or a bell, which is there. Whose greeting that was, and whether that
    /// endpoint's memory can be read: it has to be [answered](Self::answer).
    pub(super) fn read_socket(&mut self) -> Option<(Address, bool)> {
        let socket = self.socket.as_ref()?;
        if self.ring.is_some() {
            self.read_bell();
            return None;
        }
        match welcome(socket) {
            Ok((from, consumer, (at, number))) => {
                self.ring = Some((from, consumer));
                let mut read = [0; 8];
                Some((from, self.read(at, &mut read) && u64::from_ne_bytes(read) == number))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => {
                self.socket = None;
                None
            }
        }
    }

    /// Reads a bell, if there is one, and whether the sender is still there.
    pub(super) fn read_bell(&mut self) {
        let Some(socket) = &self.socket else { return };
        match recv(socket, &mut [0; 8][..], RecvFlags::DONTWAIT) {
            Ok((1.., _)) | Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => self.socket = None,
        }
    }

    fn read(&self, at: u64, place: &mut [u8]) -> bool {
        self.remote.is_some_and(|remote| remote.read(at, place))
    }

    /// Tells the sender whether its memory is read, and how to call.
    pub(super) fn answer(&self, reads: bool, calls: &Calls) {
        let [low, high] = self.call.to_ne_bytes();
        if let Some(socket) = &self.socket {
            // A sender that does not hear sends short frames, or is about to be given up.
            let _ = pass(socket, &[if reads { READS } else { READS_NOT }, low, high], calls.file());
        }
    }

    pub(super) fn is_from(&self, endpoint: Address) -> bool {
        self.ring.as_ref().is_some_and(|(from, _)| *from == endpoint)
    }

    /// Reads what a record refers to. `false` if it is no longer what was meant, or is not there,
    /// which the sender hears.
    pub(super) fn fetch(&mut self, reference: Reference, place: &mut [u8]) -> bool {
        let Reference { at, record: [_, end], .. } = reference;
        let is_read = self.read(at, place);
        // The sender may have given up meanwhile; or it has died, and another process has its
        // number.
        self.read_bell();
        let Some((_, ring)) = &self.ring else { return false };
        let is_meant = self.socket.is_some() && ring.was_valid(end);
        if let Some(socket) = &self.socket
            && is_meant
            && !is_read
        {
            // As in `answer`.
            let _ = send(socket, &[READS_NOT], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
        is_meant && is_read
    }

    pub(super) fn is_over(&self) -> bool {
        self.socket.is_none() && self.ring.as_ref().is_none_or(|(_, ring)| !ring.is_ready())
    }
}

impl AsFd for Inbound {
    /// # Panics
    /// If the sender is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("a connection that was just accepted").as_fd()
    }
}

/// The number of the process on the other side, if it belongs to the user of this one, or to root;
/// 0 if it has none here.
fn trusted_process(other: BorrowedFd<'_>) -> Option<u32> {
    let other = Credentials::of(other).ok().filter(Credentials::are_trusted)?;
    Some(other.process.map_or(0, |process| process.as_raw_nonzero().get().unsigned_abs()))
}

/// What a sender says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Greeting {
    from: Address,
    lines: u32,
    number: (u64, u64),
}

fn greet(socket: &OwnedFd, greeting: &Greeting, file: BorrowedFd<'_>) -> io::Result<()> {
    let Greeting { from: Address { nic, endpoint }, lines, number: (at, number) } = *greeting;
    let (at, number, lines) = (at.to_ne_bytes(), number.to_ne_bytes(), lines.to_ne_bytes());
    let bytes = [&GREETING[..], &at, &number, &lines, &nic.0, &[endpoint, 0]].concat();
    pass(socket, &bytes, file)
}

fn pass(socket: &OwnedFd, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [file];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)?;
    Ok(())
}

/// Receives bytes, and a file if one comes with them.
fn receive(socket: &OwnedFd, bytes: &mut [u8]) -> rustix::io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let came = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags)?.bytes;
    let mut file = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut fds) = message {
            file = fds.next();
        }
    }
    Ok((came, file))
}

/// Reads a greeting, and maps the ring that comes with it; also where a number is, and which one.
fn welcome(socket: &OwnedFd) -> io::Result<(Address, Consumer, (u64, u64))> {
    let mut bytes = [0; LENGTH + 1];
    let (came, file) = receive(socket, &mut bytes)?;
    let Greeting { from, lines, number } =
        parse(&bytes[..came]).ok_or(io::ErrorKind::InvalidData)?;
    let file = file.ok_or(io::ErrorKind::InvalidData)?;
    Ok((from, Consumer::adopt(file, lines)?, number))
}

fn parse(bytes: &[u8]) -> Option<Greeting> {
    let (greeting, rest) = bytes.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (lines, rest) = rest.split_first_chunk()?;
    let (nic, rest) = rest.split_first_chunk()?;
    let number = (u64::from_ne_bytes(*at), u64::from_ne_bytes(*number));
    let lines = u32::from_ne_bytes(*lines);
    let [endpoint, _reserved] = *rest else { return None };
    let from = Address { nic: NicId(*nic), endpoint };
    (*greeting == GREETING && is_possible(lines)).then_some(Greeting { from, lines, number })
}
