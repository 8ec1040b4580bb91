//! Hosts of a segment that ask a port for connections, answer its questions or do not, connect to
//! it over TCP, and send streams of any bytes in any pieces.
//!
//! A connection opens only for a host that has sent, or was given, the number that was sent to
//! it. What comes of a stream is what a slow reading of all its bytes says, in whatever pieces they
//! come. Each operation is a byte and what belongs to it:
//!
//! | byte modulo 13 | |
//! |---|---|
//! | 0 | the port sends data to a host, and asks it to connect |
//! | 1 | a host connects, and says hello |
//! | 2 | a host says that it comes; 3: or anything else in such a frame |
//! | 4 | a host asks the port to connect to it; 5: and answers who has come |
//! | 6 | frames, runs or bytes for a stream; 7: some of them leave |
//! | 8, 9 | the port receives |
//! | 10 | the port sends bulk frames; 11: a host reads some of them |
//! | 12 | a connection ends |

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use mx::address::Address;
use mx::outgoing::BulkPath;
use mx::wire::{BULK_FRAME, BULK_PAYLOAD, FrameType, RUN, RUN_HEAD, Run};
use mx_io::port::tcp_bulk::TcpBulkPort;
use mx_io::port::wire::{Wire, WirePort};
use mx_io::port::{Arrivals, ENDPOINT_AT, NicId, Outgoing, Port};
use rustix::net::sockopt::set_socket_linger;

use super::input::Input;

const MTU: u16 = 1500;
const OWN: (NicId, u8) = (NicId([2, 0, 0, 0, 0, 5]), 1);
/// Of two that ask one another at the same time the lower one is answered.
const HOSTS: [(NicId, u8); 2] = [(NicId([2, 0, 0, 0, 0, 2]), 2), (NicId([2, 0, 0, 0, 0, 9]), 3)];
const LOOPBACK: u32 = 1;
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

const ASK: u8 = 64;
/// Bytes before the frames of a stream, if the host has connected or was connected to.
const HELLO: usize = 64;
const WELCOME: usize = 64;
/// The bit of a length that says that padding follows, and how much of it there may not be.
const PADDING: u32 = 1 << 31;
const TOO_MUCH: usize = 64;

/// Connections of a replay, and bytes of a stream, at most.
const STREAMS: usize = 6;
const LONGEST: usize = 1 << 20;
/// How long a frame may take: only a fault takes as long.
const HANGS: Duration = Duration::from_secs(120);

/// A connection as its host sees it.
struct Stream {
    host: usize,
    socket: Option<TcpStream>,
    /// What is to leave, what has left, and how much of that comes before the frames.
    pending: Vec<u8>,
    sent: Vec<u8>,
    before: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    Never,
    Always,
    Sometimes,
}

#[derive(Default)]
struct From {
    /// Heads and data of frames; of data in their place the head is that of the first frame.
    frames: Vec<(Option<Vec<u8>>, Vec<u8>)>,
    room: Vec<u8>,
    base: usize,
}

struct ReceivedFrames {
    places: Places,
    calls: usize,
    from: [From; HOSTS.len()],
}

struct TcpHosts {
    port: TcpBulkPort<WirePort>,
    hosts: [WirePort; HOSTS.len()],
    listener: TcpListener,
    came: ReceivedFrames,
    streams: Vec<Stream>,
    /// What the port has asked each host with, and what it wants to hear from the port.
    asked: [Option<u64>; HOSTS.len()],
    wanted: [Option<u64>; HOSTS.len()],
    may_open: [bool; HOSTS.len()],
    is_open: [bool; HOSTS.len()],
}

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let places = [Places::Never, Places::Always, Places::Sometimes][usize::from(input.u8() % 3)];
    let mut world = TcpHosts::new(places);
    while !input.is_empty() {
        match input.u8() % 13 {
            0 => world.ask(host(&mut input)),
            1 => world.connect(&mut input),
            2 => world.come(&mut input),
            3 => {
                let (host, length) = (host(&mut input), input.u8() % 40);
                let mut frame = vec![ASK, input.u8(), OWN.1, HOSTS[host].1];
                frame.extend(input.bytes(length.into()));
                world.hosts[host].send(&frame);
            }
            4 => world.call(&mut input),
            5 => world.answer(&mut input),
            6 => world.write(&mut input),
            7 => {
                let (which, count) = (usize::from(input.u8()), usize::from(input.u16()) * 4);
                if let Some(stream) = world.streams.get_mut(which) {
                    stream.leave(count);
                }
            }
            8 | 9 => world.receive(1 + usize::from(input.u8() % 64)),
            10 => world.send(&mut input),
            11 => {
                let stream = world.streams.get(usize::from(input.u8()));
                if let Some(mut socket) = stream.and_then(|stream| stream.socket.as_ref()) {
                    let _ = socket.read(&mut vec![0; 1 << 16]);
                }
            }
            _ => {
                let which = usize::from(input.u8());
                match world.streams.get_mut(which % 16) {
                    Some(stream) => drop(stream.socket.take()),
                    None => world.port.close_bulk_path(address(which % HOSTS.len())),
                }
            }
        }
    }
    world.finish();
}

fn host(input: &mut Input<'_>) -> usize {
    usize::from(input.u8()) % HOSTS.len()
}

fn address(host: usize) -> Address {
    Address { nic: HOSTS[host].0, endpoint: HOSTS[host].1 }
}

impl TcpHosts {
    fn new(places: Places) -> Self {
        let wire = Wire::new(MTU, 64).expect("there are such wires");
        let plug = |(nic, endpoint)| wire.port(nic, endpoint).expect("no other port has it");
        let port = TcpBulkPort::new(plug(OWN), LOOPBACK, Ipv4Addr::LOCALHOST).expect("a listener");
        let listener = TcpListener::bind((ELSEWHERE, 0)).expect("a listener");
        listener.set_nonblocking(true).expect("it takes it");
        Self {
            port,
            hosts: HOSTS.map(plug),
            listener,
            came: ReceivedFrames { places, calls: 0, from: Default::default() },
            streams: Vec::new(),
            asked: [None; HOSTS.len()],
            wanted: [None; HOSTS.len()],
            may_open: [false; HOSTS.len()],
            is_open: [false; HOSTS.len()],
        }
    }

    fn ask(&mut self, host: usize) {
        transmit(&mut self.port, host, FrameType::Medium, 100, 1);
        self.hear();
    }

    fn hear(&mut self) {
        transmit(&mut self.port, 0, FrameType::Medium, 0, 0);
        for (host, port) in self.hosts.iter_mut().enumerate() {
            let (asked, wanted) = (&mut self.asked[host], &mut self.wanted[host]);
            let take = &mut |_, frame: &[u8]| {
                if frame[0] == ASK {
                    let number =
                        |at: usize| frame[at..].first_chunk().map(|b| u64::from_be_bytes(*b));
                    assert_eq!((frame.len(), frame[3]), (28, OWN.1));
                    match frame[1] {
                        0 => *asked = number(12),
                        _ => *wanted = number(20),
                    }
                }
            };
            port.receive(64, take).expect("nothing ends a wire");
        }
    }

    /// A host connects, and says who it is and what it was asked with; or something else.
    fn connect(&mut self, input: &mut Input<'_>) {
        let (host, how) = (host(input), input.u8());
        if self.streams.len() == STREAMS {
            return;
        }
        let Ok(socket) = TcpStream::connect(self.port.tcp_address()) else { return };
        let nonce = self.asked[host].unwrap_or(7) ^ u64::from(how & 1);
        let key = HOSTS[if how & 2 == 0 { host } else { (host + 1) % HOSTS.len() }];
        let hello =
            [&key.0.0[..], &[key.1, how & 4], &nonce.to_be_bytes(), &[0; HELLO - 16]].concat();
        self.may_open[host] |= how & 3 == 0 && self.asked[host].is_some();
        self.streams.push(Stream::new(host, socket, hello, HELLO));
        if how & 8 == 0 {
            self.streams.last_mut().expect("it was added").leave(HELLO);
        }
    }

    fn come(&mut self, input: &mut Input<'_>) {
        let (host, how) = (host(input), input.u8());
        let nonce = self.asked[host].unwrap_or(7) ^ u64::from(how & 1);
        self.hosts[host].send(&about(host, 1, [0; 6], [nonce, 99]));
    }

    /// A host asks the port to connect to it, or to somebody else.
    fn call(&mut self, input: &mut Input<'_>) {
        let (host, how) = (host(input), input.u8());
        let Ok(std::net::SocketAddr::V4(own)) = self.listener.local_addr() else { return };
        let to = match how % 4 {
            0 => self.port.tcp_address(),
            1 => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, input.u16()),
            2 => SocketAddrV4::new(ELSEWHERE, input.u16() % 1024),
            _ => own,
        };
        let [a, b, c, d] = to.ip().octets();
        let [high, low] = to.port().to_be_bytes();
        self.hosts[host].send(&about(host, 0, [a, b, c, d, high, low], [77, 0]));
        self.receive(64);
    }

    /// A host takes the port's connection, and welcomes it; or not.
    fn answer(&mut self, input: &mut Input<'_>) {
        let (host, how) = (host(input), input.u8());
        self.receive(64);
        self.hear();
        let Ok((socket, from)) = self.listener.accept() else { return };
        assert_eq!(from.ip(), Ipv4Addr::LOCALHOST);
        if self.streams.len() == STREAMS {
            return;
        }
        let welcome = self.wanted[host].unwrap_or(7) ^ u64::from(how & 1);
        self.may_open[host] |= how & 1 == 0 && self.wanted[host].is_some();
        let welcome = [&welcome.to_be_bytes()[..], &[0; WELCOME - 8]].concat();
        self.streams.push(Stream::new(host, socket, welcome, WELCOME));
        self.streams.last_mut().expect("it was added").leave(usize::from(how / 2) % 9 * 8);
    }

    fn write(&mut self, input: &mut Input<'_>) {
        let (which, how) = (usize::from(input.u8()), input.u8());
        let Some(stream) = self.streams.get_mut(which) else { return };
        let length = usize::from(input.u16());
        let to = if how & 64 == 0 { OWN.1 } else { 9 };
        let frame_type = if how & 4 == 0 { FrameType::Reply } else { FrameType::Medium };
        let head = [frame_type as u8, if how & 128 == 0 { 0 } else { 1 }, to, 2];
        let (said, length) = match how % 4 {
            0 => (length, length),
            1 => (length + BULK_PAYLOAD, length + BULK_PAYLOAD),
            // A run of several frames.
            2 => (length + usize::from(how / 8 % 4) * BULK_PAYLOAD, length + 3 * BULK_PAYLOAD),
            // A lie, and what follows it.
            _ => {
                let padding = PADDING as usize | (length % 99);
                ([length, RUN, RUN + 1, padding][usize::from(how / 8) % 4], length % 99)
            }
        };
        if stream.pending.len() + stream.sent.len() + length > LONGEST {
            return;
        }
        let said = if how % 4 == 2 { length } else { said } as u32;
        stream.pending.extend(said.to_be_bytes());
        let start = stream.pending.len();
        stream.pending.extend(head);
        stream.pending.extend(input.bytes(usize::from(how & 32)));
        let pattern = (0..length).map(|at| (at * 31 + start) as u8 ^ (at >> 8) as u8);
        stream.pending.extend(pattern);
        stream.pending.truncate(start + length);
    }

    fn receive(&mut self, budget: usize) {
        self.port.clear().expect("nothing ends a wire");
        let came = self.port.receive(budget, &mut self.came).expect("nothing ends a wire");
        assert!(came <= budget, "{came} of {budget}");
        for (peer, state) in self.port.bulk_changes() {
            let host = (0..HOSTS.len()).find(|host| address(*host) == peer);
            let host = host.expect("a path is to a host that there is");
            assert!(state.path == BulkPath::Closed || self.may_open[host], "a path to {peer}");
            self.is_open[host] = state.path != BulkPath::Closed;
        }
    }

    /// The port sends frames longer than the MTU, if it has a path.
    fn send(&mut self, input: &mut Input<'_>) {
        let (host, length) = (host(input), usize::from(input.u16()) % (BULK_FRAME + 1));
        let length = if self.is_open[host] { length.max(4) } else { 100 };
        transmit(&mut self.port, host, FrameType::Pull, length, usize::from(input.u8() % 32));
        self.receive(64);
    }

    /// What is pending leaves, and comes, of a host that has one connection alone, unless the port
    /// has closed that.
    fn finish(&mut self) {
        let begun = Instant::now();
        for stream in &mut self.streams {
            // A connection that is not open yet need not become so.
            stream.pending.truncate(if stream.sent.len() < stream.before { 0 } else { LONGEST });
        }
        loop {
            self.streams.iter_mut().for_each(|stream| stream.leave(usize::MAX));
            self.receive(64);
            if !(0..HOSTS.len()).any(|host| self.waits(host)) {
                break;
            }
            assert!(begun.elapsed() < HANGS, "what was sent does not come");
        }
        self.check();
    }

    fn waits(&self, host: usize) -> bool {
        let mut streams = self.streams.iter().filter(|stream| stream.host == host);
        let (Some(stream), None) = (streams.next(), streams.next()) else { return false };
        if !self.is_open[host] || stream.socket.is_none() {
            return false;
        }
        let came = self.came.from[host].frames.len();
        let is_all = || self.came.places == Places::Sometimes || came >= stream.frames().len();
        !stream.pending.is_empty() || !is_all()
    }

    /// What has come of each host is what its streams say, of each from its beginning. Where places
    /// are taken back some frames are lost.
    fn check(&self) {
        let may_skip = self.came.places == Places::Sometimes;
        for (host, from) in self.came.from.iter().enumerate() {
            let streams = self.streams.iter().filter(|stream| stream.host == host);
            let mut streams = streams.map(Stream::frames);
            let mut expected = Vec::new().into_iter();
            for (number, (head, data)) in from.frames.iter().enumerate() {
                let is_it = |(other, sent): &(Vec<u8>, Vec<u8>)| {
                    head.as_ref().is_none_or(|head| head == other) && data == sent
                };
                while !expected.next().is_some_and(|next| is_it(&next)) {
                    if !may_skip || expected.len() == 0 {
                        let next = streams.next();
                        expected = next.unwrap_or_else(|| panic!("frame {number}")).into_iter();
                    }
                }
            }
        }
    }
}

fn frames(mut bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut frames = Vec::new();
    let mut add = |head: &[u8], data: &[u8]| {
        if head[ENDPOINT_AT] == OWN.1 {
            frames.push((head.to_vec(), data.to_vec()));
        }
    };
    while let Some((prefix, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*prefix);
        let padding = (length ^ PADDING) as usize;
        if padding < TOO_MUCH {
            let Some(rest) = rest.get(padding..) else { break };
            bytes = rest;
            continue;
        }
        let length = length as usize;
        let Some(head) = rest.first_chunk::<RUN_HEAD>() else { break };
        if !(RUN_HEAD..=RUN).contains(&length) {
            break;
        }
        let Some(mut run) = Run::new(head, length - RUN_HEAD) else {
            let Some(frame) = rest.get(..length).filter(|_| length <= BULK_FRAME) else { break };
            add(&frame[..RUN_HEAD], &frame[RUN_HEAD..]);
            bytes = &rest[length..];
            continue;
        };
        bytes = &rest[RUN_HEAD..];
        while run.left() > 0 {
            let Some(data) = bytes.get(..run.next()) else { return frames };
            add(&run.head(), data);
            bytes = &bytes[data.len()..];
            run.advance(data.len());
        }
    }
    frames
}

impl ReceivedFrames {
    fn of(&mut self, nic: NicId) -> &mut From {
        let host = HOSTS.iter().position(|(other, _)| *other == nic);
        &mut self.from[host.expect("a host that there is")]
    }
}

impl Arrivals for ReceivedFrames {
    fn take(&mut self, from: NicId, frame: &[u8]) {
        assert!(frame.len() <= BULK_FRAME && frame[ENDPOINT_AT] == OWN.1);
        if let Some((head, data)) = frame.split_first_chunk::<RUN_HEAD>() {
            self.of(from).frames.push((Some(head.to_vec()), data.to_vec()));
        }
    }

    fn place(
        &mut self,
        from: NicId,
        head: &[u8; RUN_HEAD],
        skip: usize,
        most: usize,
    ) -> Option<&mut [u8]> {
        self.calls += 1;
        let is_wanted = match self.places {
            Places::Never => false,
            Places::Always => true,
            Places::Sometimes => !self.calls.is_multiple_of(3),
        };
        assert!(skip < BULK_PAYLOAD && skip + most <= RUN - RUN_HEAD, "{skip} and {most}");
        let from = self.of(from);
        if skip == 0 {
            from.base = 0;
        }
        let start = from.base + skip;
        from.room.resize(from.room.len().max(start + most), 0);
        (is_wanted && head[ENDPOINT_AT] == OWN.1).then(|| &mut from.room[start..start + most])
    }

    fn placed(&mut self, from: NicId, head: &[u8; RUN_HEAD], length: usize) {
        let from = self.of(from);
        let mut head = Some(head.to_vec());
        for data in from.room[from.base..from.base + length].chunks(BULK_PAYLOAD) {
            from.frames.push((head.take(), data.to_vec()));
        }
        from.base += length;
    }
}

impl Stream {
    fn new(host: usize, socket: TcpStream, pending: Vec<u8>, before: usize) -> Self {
        // It leaves nothing behind in the kernel.
        let _ = set_socket_linger(&socket, Some(Duration::ZERO));
        socket.set_nonblocking(true).expect("it takes it");
        Self { host, socket: Some(socket), pending, sent: Vec::new(), before }
    }

    fn frames(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        frames(&self.sent[self.before.min(self.sent.len())..])
    }

    /// Sends so many bytes, as far as the kernel takes them.
    fn leave(&mut self, count: usize) {
        let Some(socket) = &mut self.socket else { return };
        let count = count.min(self.pending.len());
        match socket.write(&self.pending[..count]) {
            Ok(sent) => self.sent.extend(self.pending.drain(..sent)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.socket = None,
        }
    }
}

fn about(host: usize, kind: u8, address: [u8; 6], nonces: [u64; 2]) -> Vec<u8> {
    let head = [ASK, kind, OWN.1, HOSTS[host].1];
    let nonces = nonces.map(u64::to_be_bytes).concat();
    [&head[..], &address, &[0, 0], &nonces].concat()
}

/// Sends so many frames to a host, as far as there is room.
fn transmit(port: &mut impl Port, host: usize, kind: FrameType, length: usize, mut left: usize) {
    let (to, endpoint) = HOSTS[host];
    let sent = port.transmit(&mut |frame: &mut [u8]| {
        left = left.checked_sub(1)?;
        let length = length.min(frame.len());
        frame[..length].fill(0);
        (frame[0], frame[ENDPOINT_AT]) = (kind as u8, endpoint);
        Some(Outgoing::new(to, endpoint, length))
    });
    sent.expect("nothing ends a wire");
}

trait HostFrames {
    fn send(&mut self, frame: &[u8]);
}

impl HostFrames for WirePort {
    fn send(&mut self, bytes: &[u8]) {
        let mut left = 1;
        let sent = self.transmit(&mut |frame: &mut [u8]| {
            left -= 1;
            frame[..bytes.len()].copy_from_slice(bytes);
            let (to, endpoint) = OWN;
            (left == 0).then_some(Outgoing::new(to, endpoint, bytes.len()))
        });
        sent.expect("nothing ends a wire");
    }
}
