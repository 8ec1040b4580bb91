//! The UDP path of large messages: when it is used, and when not.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ::mx::wire::{FLAG_MARK, FrameType};
use mx_io::port::packet::{PacketPort, PacketSettings};
use mx_io::port::udp_bulk::UdpBulkPort;
use mx_io::port::{ENDPOINT_AT, NicId, Outgoing, Port, Transmitted};

use super::frames::{To, drain, number, take, until, write};
use super::kinds::{A, B, Veth, over_udp_bulk};

/// How long the path stays open after the peer was heard.
const OPEN_FOR: Duration = Duration::from_millis(1000);

/// The length of frames that open the path; no others have it.
const OPENING: usize = 100;

/// Writes frame `number` of a large message; the last one is marked.
fn write_reply(frame: &mut [u8], endpoint: u8, number: u32, is_last: bool) {
    write(frame, endpoint, number);
    frame[0] = FrameType::Reply as u8;
    frame[1] = if is_last { FLAG_MARK } else { 0 };
}

/// Sends so many frames of a large message.
fn send_replies(port: &mut dyn Port, to: To, count: u32, length: usize) {
    let mut numbers = 0..count;
    let outcome = port.transmit(&mut |frame| {
        let number = numbers.next()?;
        write_reply(&mut frame[..length], to.endpoint, number, number + 1 == count);
        Some(Outgoing { to: to.nic, endpoint: to.endpoint, marked: false, length })
    });
    assert_eq!(outcome.unwrap(), Transmitted::Drained);
}

/// Receives, as one who was woken.
fn look(port: &mut dyn Port) {
    port.clear().unwrap();
    port.receive(64, &mut |_, _| {}).unwrap();
}

/// Sends single frames until they take the UDP path.
fn open(a: &mut dyn Port, b: &mut dyn Port) {
    until("opening the UDP path", || {
        let before = a.counters().udp_bulk_out;
        send_replies(a, To::port(b), 2, OPENING);
        look(a);
        look(b);
        a.counters().udp_bulk_out > before
    });
    drain(b);
}

#[test]
fn all_but_the_last_frame_of_a_large_message_take_the_udp_path() {
    let mut pair = over_udp_bulk(1500);
    let (a, b) = (&mut *pair.a, &mut *pair.b);
    open(a, b);
    for length in [a.mtu().into(), 700, 24] {
        let frames = send_by_udp(a, b, length);
        let numbers: Vec<_> = frames.iter().map(|(_, frame)| number(frame)).collect();
        // Both ways have their own order; nobody minds.
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..64).collect::<Vec<_>>());
        for (from, frame) in &frames {
            let mut expected = vec![0; length];
            let number = number(frame);
            write_reply(&mut expected, B, number, number == 63);
            assert_eq!((*from, &frame[..length]), (a.nic_id(), &expected[..]), "frame {number}");
        }
    }
}

/// Sends 64 frames, all but the last of which take the UDP path if it was open meanwhile; what
/// came. A machine that stands still for as long as the path stays open makes this begin anew.
fn send_by_udp(a: &mut dyn Port, b: &mut dyn Port, length: usize) -> Vec<(NicId, Vec<u8>)> {
    let mut frames = Vec::new();
    until("sending while the UDP path is open", || {
        let opening = Instant::now();
        open(a, b);
        let (sent, came) = (a.counters().udp_bulk_out, b.counters().udp_bulk_in);
        send_replies(a, To::port(b), 64, length);
        let was_open = opening.elapsed() < OPEN_FOR;
        frames.clear();
        until("all frames come", || {
            // A frame that has opened the path may be late.
            frames.extend(drain(b).into_iter().filter(|(_, frame)| frame.len() != OPENING));
            frames.len() >= 64
        });
        let (sent, came) = (a.counters().udp_bulk_out - sent, b.counters().udp_bulk_in - came);
        assert!(!was_open || (sent == 63 && came >= 63), "{sent} sent, {came} came");
        was_open
    });
    frames
}

#[test]
fn peer_without_a_udp_path_gets_everything_by_ethernet() {
    let veth = Veth::with_addresses(1500);
    let mut a = veth.udp_bulk_port(0, A).unwrap();
    let mut b = veth.port(1, B, PacketSettings::default()).unwrap();
    for _ in 0..3 {
        send_replies(&mut a, To::port(&b), 8, 1400);
        let mut came = Vec::new();
        let is_reply = |(_, frame): &&(NicId, Vec<u8>)| frame[0] == FrameType::Reply as u8;
        until("the replies come", || {
            came.extend(drain(&mut b));
            came.iter().filter(is_reply).count() >= 8
        });
        // One of them was the question, whose type only ports with a UDP path know.
        assert_eq!(came.iter().filter(is_reply).count(), 8);
    }
    assert_eq!(a.counters().udp_bulk_out, 0);
}

#[test]
fn path_that_nobody_answers_is_left() {
    let mut pair = over_udp_bulk(1500);
    open(&mut *pair.a, &mut *pair.b);
    // The peer hears nothing from now on; that takes a second to be sure of.
    sleep(Duration::from_millis(1100));
    let before = pair.a.counters().udp_bulk_out;
    send_replies(&mut *pair.a, To::port(&*pair.b), 8, 1400);
    assert_eq!(pair.a.counters().udp_bulk_out, before);
    assert!(take(&mut *pair.b, 8).len() >= 8);
}

#[test]
fn datagrams_that_are_no_frames_of_large_messages_for_it_are_counted() {
    let veth = Veth::with_addresses(1500);
    let mut port = veth.udp_bulk_port(0, A).unwrap();
    let stranger = veth.enter(1, || UdpSocket::bind((Ipv4Addr::new(10, 88, 0, 2), 0)).unwrap());
    let mut reply = [0; 8 + 100];
    write_reply(&mut reply[8..], A, 1, false);
    let [mut other_endpoint, mut other_type, mut other_kind] = [reply; 3];
    other_endpoint[8 + ENDPOINT_AT] = B;
    other_type[8] = FrameType::Notify as u8;
    other_kind[6] = 200;
    let long = [reply.to_vec(), vec![0; 1500]].concat();
    let bad: [&[u8]; 9] = [
        &[],
        &reply[..7],
        &reply[..8],
        &reply[..10],
        &other_endpoint,
        &other_type,
        &other_kind,
        // Kinds that belong to a handshake that was not begun, and one of them without its end.
        &[0, 0, 0, 0, 0, 0, 3, 0, 1, 2, 3],
        &long,
    ];
    for datagram in bad {
        stranger.send_to(datagram, port.udp_address()).unwrap();
    }
    port.clear().unwrap();
    until("all are counted", || {
        assert_eq!(drain(&mut port), []);
        port.counters().strange + port.counters().too_long >= 9
    });
    let counters = port.counters();
    assert_eq!((counters.strange, counters.too_long, counters.udp_bulk_in), (8, 1, 0));
    stranger.send_to(&reply, port.udp_address()).unwrap();
    port.clear().unwrap();
    let came = take(&mut port, 1);
    assert_eq!((came.len(), came[0].0), (1, NicId([0; 6])));
}

#[test]
fn question_that_is_too_short_is_counted() {
    let veth = Veth::with_addresses(1500);
    let mut port = veth.udp_bulk_port(0, A).unwrap();
    let mut other: PacketPort = veth.port(1, B, PacketSettings::default()).unwrap();
    let (to, endpoint) = (port.nic_id(), port.endpoint());
    let mut lengths = [19, 20].into_iter();
    let outcome = other.transmit(&mut |frame| {
        let length = lengths.next()?;
        frame[..length].fill(0);
        (frame[0], frame[ENDPOINT_AT]) = (64, endpoint);
        Some(Outgoing { to, endpoint, marked: false, length })
    });
    assert_eq!(outcome.unwrap(), Transmitted::Drained);
    assert_eq!(drain(&mut port), [], "neither is for MX");
}

#[test]
fn mtu_leaves_room_for_the_headers_of_a_datagram() {
    for (mtu, expected) in [(1500, 1464), (9000, 8964)] {
        let veth = Veth::with_addresses(mtu);
        assert_eq!(veth.udp_bulk_port(0, A).unwrap().mtu(), expected);
    }
    let veth = Veth::with_addresses(1500);
    let plain = veth.port(0, A, PacketSettings::default()).unwrap();
    let elsewhere = Ipv4Addr::new(192, 0, 2, 1);
    assert!(veth.enter(0, || UdpBulkPort::new(plain, elsewhere)).is_err());
}
