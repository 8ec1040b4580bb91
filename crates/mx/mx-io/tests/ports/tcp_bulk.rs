//! TCP connections for bulk frames: how they open, what they carry, and who gets none.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ::mx::address::Address;
use ::mx::wire::{BULK_FRAME, FrameType};
use mx_io::port::packet::PacketPort;
use mx_io::port::tcp_bulk::{MAX_OPENING, TcpBulkPort};
use mx_io::port::{BulkPath, BulkState, ENDPOINT_AT, NicId, Outgoing, Port, Transmitted};

use super::frames::{To, drain, read, until, write};
use super::kinds::{A, B, Veth};

const ASK: u8 = 64;

fn send(port: &mut dyn Port, to: To, frame_type: FrameType, lengths: &[usize]) -> usize {
    let mut sent = 0;
    let outcome = port.transmit(&mut |frame: &mut [u8]| {
        let length = *lengths.get(sent)?;
        write(&mut frame[..length], to.endpoint, sent as u32);
        frame[0] = frame_type as u8;
        sent += 1;
        Some(Outgoing::new(to.nic, to.endpoint, length))
    });
    assert_eq!(outcome.unwrap(), Transmitted::Drained);
    sent
}

struct TestEndpoint {
    host: usize,
    port: TcpBulkPort<PacketPort>,
}

impl TestEndpoint {
    fn new(veth: &Veth, host: usize, endpoint: u8) -> Self {
        Self { host, port: veth.tcp_bulk_port(host, endpoint).unwrap() }
    }

    fn to(&self) -> To {
        To::port(&self.port)
    }

    fn look(&mut self, veth: &Veth) -> Vec<(NicId, Vec<u8>)> {
        let port = &mut self.port;
        veth.enter(self.host, || look(port))
    }

    /// The changes of the path to another port, the latest last.
    fn changes(&mut self, of: To) -> Vec<BulkPath> {
        let address = Address { nic: of.nic, endpoint: of.endpoint };
        let path = |(peer, state): (_, BulkState)| {
            assert_eq!(peer, address);
            state.path
        };
        self.port.bulk_changes().into_iter().map(path).collect()
    }
}

fn look(port: &mut dyn Port) -> Vec<(NicId, Vec<u8>)> {
    let mut came = Vec::new();
    port.clear().unwrap();
    port.receive(64, &mut |from, frame: &[u8]| came.push((from, frame.to_vec()))).unwrap();
    came
}

/// Sends what makes a port ask for a path, until both have one.
fn open(veth: &Veth, a: &mut TestEndpoint, b: &mut TestEndpoint) {
    send(&mut a.port, b.to(), FrameType::Medium, &[100]);
    let mut are_open = [false; 2];
    until("opening a connection", || {
        for end in [&mut *a, b] {
            end.look(veth);
        }
        // What they have to say about connections.
        send(&mut a.port, b.to(), FrameType::Medium, &[]);
        send(&mut b.port, a.to(), FrameType::Medium, &[]);
        are_open[0] |= a.changes(b.to()).contains(&BulkPath::Open);
        are_open[1] |= b.changes(a.to()).contains(&BulkPath::Open);
        are_open == [true; 2]
    });
}

fn pair() -> (Veth, TestEndpoint, TestEndpoint) {
    let veth = Veth::with_addresses();
    let [a, b] = [(0, A), (1, B)].map(|(host, endpoint)| TestEndpoint::new(&veth, host, endpoint));
    (veth, a, b)
}

#[test]
fn bulk_frames_travel_in_both_directions() {
    let (veth, mut a, mut b) = pair();
    open(&veth, &mut a, &mut b);
    // A connection has room for these.
    let lengths = [1501, BULK_FRAME, 2000, 1501];
    for _ in 0..20 {
        for swap in [false, true] {
            let (from, to) = if swap { (&mut b, &mut a) } else { (&mut a, &mut b) };
            assert_eq!(send(&mut from.port, to.to(), FrameType::Small, &lengths), lengths.len());
            let mut came = Vec::new();
            until("all frames come", || {
                came.extend(look(&mut to.port));
                came.len() >= lengths.len()
            });
            for (number, (nic, frame)) in came.iter().enumerate() {
                assert_eq!((*nic, frame.len()), (from.to().nic, lengths[number]));
                assert_eq!(read(frame, to.to().endpoint, lengths[number]), number as u32);
            }
        }
    }
    let [a, b] = [a, b].map(|mut end| end.port.counters());
    assert_eq!([a.bulk_out, b.bulk_in, b.bulk_out, a.bulk_in], [80; 4]);
}

#[test]
fn connection_without_room_says_so_and_loses_nothing() {
    let (veth, mut a, mut b) = pair();
    open(&veth, &mut a, &mut b);
    let (to, lengths) = (b.to(), [BULK_FRAME; 1000]);
    let sent = send(&mut a.port, to, FrameType::Small, &lengths);
    assert!(sent < lengths.len(), "{sent} frames of 32 KiB found room");
    assert_eq!(a.changes(to), [BulkPath::Full]);
    let (mut came, mut has_room) = (Vec::new(), false);
    until("what was sent comes", || {
        came.extend(look(&mut b.port).iter().map(|(_, frame)| read(frame, B, BULK_FRAME)));
        look(&mut a.port);
        has_room |= a.changes(to) == [BulkPath::Open];
        came.len() == sent && has_room
    });
    assert_eq!(came, (0..sent as u32).collect::<Vec<_>>());
}

#[test]
fn ports_that_ask_one_another_at_once_agree() {
    let (veth, mut a, mut b) = pair();
    send(&mut a.port, b.to(), FrameType::Pull, &[100]);
    send(&mut b.port, a.to(), FrameType::Pull, &[100]);
    open(&veth, &mut a, &mut b);
    for end in [&mut a, &mut b] {
        drain(&mut end.port);
        assert_eq!(end.port.bulk_changes(), []);
    }
}

#[test]
fn peer_that_goes_away_and_comes_back_has_another_connection() {
    let (veth, mut a, mut b) = pair();
    for _ in 0..3 {
        open(&veth, &mut a, &mut b);
        let to = b.to();
        drop(b);
        until("the connection is closed", || {
            look(&mut a.port);
            a.changes(to) == [BulkPath::Closed]
        });
        b = TestEndpoint::new(&veth, 1, B);
    }
}

#[test]
fn connection_that_breaks_is_opened_again_whatever_is_sent() {
    let (veth, mut a, mut b) = pair();
    open(&veth, &mut a, &mut b);
    let (to_a, to_b) = (a.to(), b.to());
    a.port.close_bulk_path(Address { nic: to_b.nic, endpoint: to_b.endpoint });
    assert_eq!(a.changes(to_b), [BulkPath::Closed]);
    let mut changes = Vec::new();
    until("the other end asks for another connection", || {
        b.look(&veth);
        // Data that wait for a path are none of these.
        send(&mut b.port, to_a, FrameType::Probe, &[60]);
        a.look(&veth);
        send(&mut a.port, to_b, FrameType::Medium, &[]);
        changes.extend(b.changes(to_a));
        changes == [BulkPath::Closed, BulkPath::Open]
    });
}

#[test]
fn peer_without_tcp_is_asked_once_a_second() {
    let veth = Veth::with_addresses();
    let mut a = veth.tcp_bulk_port(0, A).unwrap();
    let mut b = veth.port(1, B).unwrap();
    let to = To::port(&b);
    let start = Instant::now();
    let mut asked = 0;
    for _ in 0..50 {
        assert_eq!(send(&mut a, to, FrameType::Medium, &[1000; 4]), 4);
        let came = look(&mut b);
        asked += came.iter().filter(|(_, frame)| frame[0] == ASK).count();
    }
    let most = 1 + start.elapsed().as_secs() as usize;
    assert!((1..=most).contains(&asked), "asked {asked} times, not {most}");
    assert_eq!(a.bulk_changes(), []);
}

/// What a stranger hears until it is disconnected.
fn hears(mut stream: TcpStream, port: &mut dyn Port) -> Vec<u8> {
    stream.set_nonblocking(true).unwrap();
    let mut heard = Vec::new();
    until("the stranger is disconnected", || {
        look(port);
        match stream.read_to_end(&mut heard) {
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
            Ok(_) => true,
        }
    });
    heard
}

#[test]
fn strangers_who_say_nothing_are_few_and_keep_no_others_out() {
    let (veth, mut b, mut a) = pair();
    let address = a.port.tcp_address();
    let connect = || veth.enter(0, || TcpStream::connect(address).unwrap());
    let silent: Vec<_> = (0..MAX_OPENING + 8).map(|_| connect()).collect();
    until("all have been looked at", || {
        look(&mut a.port);
        a.port.counters().strange >= 8
    });
    open(&veth, &mut a, &mut b);
    // They have a second.
    sleep(Duration::from_millis(1100));
    drop(connect());
    until("all are gone", || {
        look(&mut a.port);
        a.port.counters().strange >= 8
    });
    for stranger in silent {
        assert!(hears(stranger, &mut a.port).is_empty());
    }
}

/// Sends a frame that asks a port to connect to an address.
fn call(from: &mut PacketPort, to: To, at: SocketAddr) {
    let SocketAddr::V4(at) = at else { panic!("an address of IPv4") };
    let outcome = from.transmit(&mut call_once(to, at.ip().octets(), at.port()));
    assert_eq!(outcome.unwrap(), Transmitted::Drained);
}

fn call_once(to: To, ip: [u8; 4], port: u16) -> impl FnMut(&mut [u8]) -> Option<Outgoing> {
    let mut left = 1;
    move |frame| {
        left = i32::checked_sub(left, 1).filter(|left| *left >= 0)?;
        frame[..28].fill(9);
        (frame[0], frame[1], frame[ENDPOINT_AT], frame[3]) = (ASK, 0, to.endpoint, B);
        frame[4..8].copy_from_slice(&ip);
        frame[8..10].copy_from_slice(&port.to_be_bytes());
        Some(Outgoing::new(to.nic, to.endpoint, 28))
    }
}

#[test]
fn port_connects_to_none_but_neighbours() {
    let veth = Veth::with_addresses();
    let mut a = veth.tcp_bulk_port(0, A).unwrap();
    let mut forger = veth.port(1, 99).unwrap();
    let of_host = |host, at: ([u8; 4], u16)| {
        veth.enter(host, || TcpListener::bind(SocketAddr::from(at)).unwrap())
    };
    let listeners = [of_host(0, ([0; 4], 0)), of_host(1, ([10, 88, 0, 2], 1023))];
    let [own, low] = listeners.each_ref().map(|listener| listener.local_addr().unwrap().port());
    for (ip, port) in [
        ([127, 0, 0, 1], own),
        ([0; 4], own),
        ([10, 88, 0, 1], own),
        ([255; 4], own),
        ([224, 0, 0, 1], own),
        // Behind a router, if there were one.
        ([192, 0, 2, 1], own),
        ([10, 88, 0, 2], low),
    ] {
        call(&mut forger, To::port(&a), (ip, port).into());
        veth.enter(0, || look(&mut a));
    }
    // One that is allowed, so that what would have come before it has.
    let allowed = of_host(1, ([10, 88, 0, 2], 0));
    call(&mut forger, To::port(&a), allowed.local_addr().unwrap());
    veth.enter(0, || look(&mut a));
    allowed.accept().unwrap();
    for listener in listeners {
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[test]
fn address_of_another_host_is_refused() {
    let veth = Veth::with_addresses();
    let plain = veth.port(0, A).unwrap();
    let elsewhere = Ipv4Addr::new(192, 0, 2, 1);
    let index = plain.index();
    let opened = veth.enter(0, || TcpBulkPort::new(plain, index, elsewhere));
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("192.0.2.1") && error.contains("ip -4 -brief address"), "{error}");
}
