//! Processes of this host that connect to an endpoint, or wait for its connection, and then say and
//! write what the bytes say: greetings, rings, records, answers.
//!
//! Whatever they do, what comes is for this endpoint and no longer than a record, and two endpoints
//! that follow the protocol still exchange frames at the end. Each operation is a byte and what
//! belongs to it:
//!
//! | byte modulo 12 | |
//! |---|---|
//! | 0 | a connection, and its greeting, in which anything may be wrong |
//! | 1 | a record that is whole, or almost |
//! | 2 | any word where a record begins; any bytes anywhere in the ring |
//! | 3 | a bell, or other bytes, with or without a descriptor |
//! | 4, 5 | the endpoint receives, and reads what is referred to |
//! | 6 | it arms, or clears |
//! | 7 | a connection ends |
//! | 8 | it sends to an endpoint that is hostile |
//! | 9 | that one accepts, and answers |
//! | 10 | that one writes into the ring that it was given |
//! | 11 | the path for bulk frames is closed |

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mx::address::Address;
use mx::wire::{BULK_FRAME, FrameType};
use mx_io::port::shm::{ShmPort, ShmSettings};
use mx_io::port::{Arrivals, ENDPOINT_AT, NicId, Outgoing, Port, Reference};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind,
    connect, listen, recvmsg, sendmsg, socket_with,
};

use super::input::Input;

const NIC: NicId = NicId([2, 0, 0, 0, 0, 8]);
const MTU: u16 = 1500;
const OWN: u8 = 1;
const FRIEND: u8 = 2;
const HOSTILE: u8 = 3;

const LINES: u32 = 2048;
const LINES_AT: u64 = 192;
const LINE: u64 = 64;
/// Bytes of the ring, of what receivers share with those who call, and of their pages.
const RING: u64 = (LINES_AT + LINES as u64 * LINE).next_multiple_of(4096);
const CALLS: u64 = 4096;

const CONNECTIONS: usize = 4;
/// How long a friend's frame may take: only a fault takes as long.
const HANGS: Duration = Duration::from_secs(120);

#[derive(Default)]
struct ReceivedFrames {
    references: Vec<(NicId, Reference)>,
    friendly: usize,
}

fn is_for_them(frame: &[u8]) {
    let to = frame[ENDPOINT_AT];
    assert!(to == OWN || to == FRIEND || (to == 255 && frame[0] == 3), "for {to}");
}

impl Arrivals for ReceivedFrames {
    fn take(&mut self, from: NicId, frame: &[u8]) {
        assert!(frame.len() <= BULK_FRAME, "{} bytes", frame.len());
        is_for_them(frame);
        let is_friendly = frame.get(4..).is_some_and(|rest| rest.starts_with(b"friend"));
        self.friendly += usize::from(from == NIC && is_friendly);
    }

    fn take_reference(&mut self, from: NicId, frame: &[u8], reference: Reference) {
        assert!(frame.len() <= BULK_FRAME, "{} bytes", frame.len());
        is_for_them(frame);
        assert!(reference.at.checked_add(reference.length).is_some(), "{reference:?}");
        self.references.push((from, reference));
        let surplus = self.references.len().saturating_sub(8);
        self.references.drain(..surplus);
    }
}

/// A connection to the endpoint, and the ring that it may have passed.
struct ShmConnection {
    socket: OwnedFd,
    ring: OwnedFd,
    /// The line of its next record.
    next: u64,
}

struct ShmHosts {
    scope: u32,
    port: ShmPort,
    friend: ShmPort,
    came: ReceivedFrames,
    connections: Vec<ShmConnection>,
    /// Where frames for the hostile endpoint go, and who has come.
    listener: OwnedFd,
    accepted: Vec<(OwnedFd, Option<OwnedFd>)>,
    number: Box<u64>,
}

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut world = ShmHosts::new();
    while !input.is_empty() {
        match input.u8() % 12 {
            0 => world.connect(&mut input),
            1 => world.record(&mut input),
            2 => world.scribble(&mut input),
            3 => world.ring(&mut input),
            4 | 5 => world.receive(&mut input),
            6 if input.u8().is_multiple_of(2) => drop(world.port.arm()),
            6 => drop(world.port.clear()),
            7 => {
                let which = usize::from(input.u8());
                if which < world.connections.len() {
                    world.connections.swap_remove(which);
                }
            }
            8 => {
                let length = [60, 1500, 9000, BULK_FRAME][usize::from(input.u8()) % 4];
                world.send(
                    HOSTILE,
                    length.min(if world.accepted.is_empty() { 1500 } else { length }),
                );
            }
            9 => world.accept(&mut input),
            10 => world.lie(&mut input),
            _ => world.port.close_bulk_path(Address { nic: NIC, endpoint: HOSTILE }),
        }
    }
    world.exchange();
}

impl ShmHosts {
    fn new() -> Self {
        let scope = std::process::id() << 4 | 15;
        let settings = ShmSettings { ring: 128 << 10, ..ShmSettings::new(scope, MTU) };
        let open = |endpoint| ShmPort::open(NIC, endpoint, settings).expect("no other port has it");
        let (port, friend) = (open(OWN), open(FRIEND));
        let listener = socket();
        bind(&listener, &name(scope, HOSTILE)).expect("no other port has it");
        listen(&listener, 4).expect("it is bound");
        let (connections, accepted) = (Vec::new(), Vec::new());
        let (came, number) = (ReceivedFrames::default(), Box::new(0x1234_5678));
        Self { scope, port, friend, came, connections, listener, accepted, number }
    }

    /// A connection, with a greeting that is right but for what the bytes say.
    fn connect(&mut self, input: &mut Input<'_>) {
        let socket = socket();
        if self.connections.len() == CONNECTIONS
            || connect(&socket, &name(self.scope, OWN)).is_err()
        {
            return;
        }
        let how = input.u8();
        let lines = match how % 8 {
            0 => u32::from(input.u16()),
            1 => LINES * 2,
            2 => 1 << (input.u8() % 32),
            _ => LINES,
        };
        let nic = if how & 8 == 0 { NIC } else { NicId([6; 6]) };
        let endpoint = [HOSTILE, FRIEND, 77, OWN][usize::from(how / 16 % 4)];
        let at = if how & 64 == 0 { &raw const *self.number as u64 } else { 8 };
        let number = self.number.to_ne_bytes();
        let mut greeting = [b"earmark\x03", &at.to_ne_bytes()[..], &number].concat();
        greeting.extend([&lines.to_ne_bytes()[..], &nic.0, &[endpoint, 0]].concat());
        let (size, seals) = match input.u8() {
            0 => (u64::from(input.u16()), SealFlags::SHRINK),
            1 => (RING, SealFlags::empty()),
            2 => (RING, SealFlags::SHRINK | SealFlags::WRITE),
            3 => {
                ((LINES_AT + u64::from(LINES) * 2 * LINE).next_multiple_of(4096), SealFlags::SHRINK)
            }
            _ => (RING, SealFlags::SHRINK),
        };
        let ring = memory(size, seals);
        if how & 128 != 0 {
            spoil(&mut greeting, input);
        }
        let passed = [ring.as_fd(), socket.as_fd()];
        pass(&socket, &greeting, &passed[..usize::from(input.u8().min(2))]);
        self.connections.push(ShmConnection { socket, ring, next: 0 });
    }

    fn chosen(&mut self, input: &mut Input<'_>) -> Option<&mut ShmConnection> {
        let count = self.connections.len().max(1);
        self.connections.get_mut(usize::from(input.u8()) % count)
    }

    fn record(&mut self, input: &mut Input<'_>) {
        let at = &raw const *self.number as u64;
        let Some(connection) = self.chosen(input) else { return };
        let how = input.u8();
        let mut record = Vec::new();
        let kind = u64::from(how % 4);
        if kind == 1 {
            let at = if how & 4 == 0 { at } else { u64::MAX - u64::from(input.u8()) };
            let length = if how & 8 == 0 { 8 } else { 1 << (input.u8() % 64) };
            record.extend([at.to_ne_bytes(), u64::to_ne_bytes(length)].concat());
        }
        let to = [OWN, OWN, 255, 9][usize::from(how / 16 % 4)];
        record.extend([input.u8(), 0, to, HOSTILE]);
        record.resize(record.len() + [56, 0, 3000, 33_000][usize::from(how / 64)], how);
        if input.u8() == 1 {
            record.truncate(input.u8().into());
        }
        let lines = (8 + record.len() as u64).div_ceil(LINE);
        let mut first = connection.next;
        let left = u64::from(LINES) - first % u64::from(LINES);
        if lines > left {
            connection.word(first, 2 << 30);
            first += left;
        }
        connection.write(first, 8, &record);
        connection.word(first, kind << 30 | record.len() as u64);
        connection.next = first + lines;
    }

    fn scribble(&mut self, input: &mut Input<'_>) {
        let Some(connection) = self.chosen(input) else { return };
        let (how, value) = (input.u8(), u64::from(input.u16()));
        match how % 4 {
            0 => connection.word(connection.next + value % 4, u64::from(input.u8()) << 24 | value),
            1 => connection.next = connection.next.wrapping_add(value),
            2 => {
                let ends = [value, u64::MAX, u64::MAX - value, 1 << 63];
                let word = ends[usize::from(how / 4) % 4].to_ne_bytes();
                connection.put(u64::from(how / 16) * 8 % LINES_AT, &word);
            }
            _ => connection.put(value * 2, input.bytes(usize::from(how / 4))),
        }
    }

    fn ring(&mut self, input: &mut Input<'_>) {
        let Some(connection) = self.chosen(input) else { return };
        let (length, fds) = (usize::from(input.u8()), usize::from(input.u8() % 3));
        let passed = [connection.ring.as_fd(); 2];
        pass(&connection.socket, input.bytes(length), &passed[..fds]);
    }

    fn receive(&mut self, input: &mut Input<'_>) {
        let budget = usize::from(input.u8() % 66);
        // The next that finds nothing looks who has come.
        let _ = self.port.clear();
        let came = self.port.receive(budget, &mut self.came).expect("nothing ends it");
        assert!(came <= budget, "{came} of {budget}");
        self.port.bulk_changes();
        self.port.counters();
        if let Some((nic, reference)) = self.came.references.pop() {
            let endpoint = [HOSTILE, FRIEND, 77, OWN][usize::from(input.u8()) % 4];
            let mut place = [0; 64];
            let length = reference.length.min(64) as usize;
            let peer = Address { nic, endpoint };
            let is_read = self.port.read(peer, reference, &mut place[..length]);
            let is_number = reference.at == &raw const *self.number as u64 && length == 8;
            assert!(!is_read || !is_number || place[..8] == self.number.to_ne_bytes());
        }
        let _ = self.friend.clear();
        self.friend.receive(8, &mut self.came).expect("nothing ends it");
    }

    fn send(&mut self, endpoint: u8, length: usize) {
        send(&mut self.port, endpoint, b"own", length);
    }

    /// The hostile endpoint takes the connection, with the ring, and answers.
    fn accept(&mut self, input: &mut Input<'_>) {
        if self.accepted.len() < 2
            && let Ok(socket) = accept(&self.listener)
        {
            let ring = receive(&socket, &mut [0; 64]);
            self.accepted.push((socket, ring));
        }
        let Some((socket, _)) = self.accepted.last() else { return };
        let size = if input.u8() == 0 { u64::from(input.u16()) } else { CALLS };
        let calls = memory(size, SealFlags::SHRINK);
        let (length, count) = (usize::from(input.u8() % 9), input.u8() % 3);
        pass(socket, input.bytes(length), &[calls.as_fd(), calls.as_fd()][..count.into()]);
        if input.u8() == 7 {
            self.accepted.pop();
        }
    }

    /// The hostile endpoint has taken what never was there, sleeps, or writes over records.
    fn lie(&mut self, input: &mut Input<'_>) {
        let Some((_, Some(ring))) = self.accepted.last() else { return };
        let (what, value) = (input.u8(), u64::from(input.u16()));
        let value = [value, u64::MAX - value, value << 48, 1][usize::from(what / 64)];
        let at = [64, 128, 0, 8, LINES_AT + value % 4096 * 8][usize::from(what) % 5];
        let _ = rustix::io::pwrite(ring, &value.to_ne_bytes(), at);
    }

    /// Friends still hear of each other, in both directions.
    fn exchange(&mut self) {
        let (begun, mut sent) = (Instant::now(), 0);
        let done = self.came.friendly;
        while self.came.friendly < done + 2 {
            assert!(begun.elapsed() < HANGS, "a friend's frame does not come");
            if sent == 0 || begun.elapsed().as_millis() > 50 * sent {
                // What a full ring of another has kept back for some milliseconds is lost.
                send(&mut self.friend, OWN, b"friend", 60);
                send(&mut self.port, FRIEND, b"friend", 60);
                sent += 1;
            }
            for port in [&mut self.port, &mut self.friend] {
                let _ = port.clear();
                port.receive(64, &mut self.came).expect("nothing ends it");
            }
        }
    }
}

impl ShmConnection {
    fn put(&self, at: u64, bytes: &[u8]) {
        // It may be sealed against writing, or shorter.
        let _ = rustix::io::pwrite(&self.ring, bytes, at);
    }

    fn write(&self, line: u64, at: u64, bytes: &[u8]) {
        self.put(LINES_AT + line % u64::from(LINES) * LINE + at, bytes);
    }

    fn word(&self, line: u64, low: u64) {
        self.write(line, 0, &((line.wrapping_add(1)) << 32 | low & 0xffff_ffff).to_ne_bytes());
    }
}

fn send(port: &mut ShmPort, endpoint: u8, words: &[u8], length: usize) {
    let mut left = 1;
    let sent = port.transmit(&mut |frame: &mut [u8]| {
        if left == 0 {
            return None;
        }
        left -= 1;
        frame[..length].fill(FrameType::Medium as u8);
        frame[4..][..words.len()].copy_from_slice(words);
        frame[ENDPOINT_AT] = endpoint;
        Some(Outgoing::new(NIC, endpoint, length))
    });
    sent.expect("nothing ends it");
}

fn socket() -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket")
}

fn name(scope: u32, endpoint: u8) -> SocketAddrUnix {
    let name = format!("earmark-mx/shm/{scope}/{NIC}/{endpoint}");
    SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("it is short")
}

fn memory(bytes: u64, seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(c"hostile", flags).expect("a file");
    ftruncate(&file, bytes).expect("room");
    fcntl_add_seals(&file, seals).expect("it may be sealed");
    file
}

/// Sends bytes and descriptors, if the other side takes them.
fn pass(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags);
}

fn receive(socket: &OwnedFd, bytes: &mut [u8]) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags).ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    })
}

fn spoil(bytes: &mut Vec<u8>, input: &mut Input<'_>) {
    let (at, value) = (usize::from(input.u8()), input.u8());
    match bytes.get_mut(at) {
        Some(byte) => *byte = value,
        None => bytes.truncate(value.into()),
    }
}
