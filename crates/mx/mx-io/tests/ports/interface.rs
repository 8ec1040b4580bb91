//! What packet ports do with the interface that they are on.

use std::time::Duration;

use lab::host::Host;
use lab::napi::Stack;
use lab::station::Station;
use lab::tap::Tap;
use mx::wire::{FLAG_ASK, FLAG_MARK, FrameType};
use mx_io::port::packet::PacketPort;
use mx_io::port::virtio::VirtioPort;
use mx_io::port::{NicId, Outgoing, Port, PortError, Transmitted};
use rustix::event::PollFlags;
use sys::netlink::Netlink;
use vhost::driver::DriverSettings;

use super::common::ok;
use super::frames::{To, drain, number, read, send, sleep, sleep_for, take, until, write};
use super::kinds::{A, B, Veth};
use super::nic_of_tests::{Nic, NicSettings};

const OTHER: NicId = NicId([2, 0, 0, 0, 0, 9]);

fn on_tap() -> (PacketPort, Tap, Host) {
    let host = ok(Host::create("a", &[Station::new("a", 1)]));
    let tap = ok(Tap::create(&host, "m0", 1, 1500));
    let port = ok(host.enter_net(|| {
        ok(ok(Netlink::open()).silence_ipv6("m0"));
        ok(ok(Netlink::open()).up("m0"));
        PacketPort::open("m0", A)
    }));
    (ok(port), tap, host)
}

/// Offers one frame of 30 bytes.
fn offer(port: &mut dyn Port, to: To, marked: bool) -> Result<Transmitted, PortError> {
    let mut offered = false;
    port.transmit(&mut |frame: &mut [u8]| {
        if std::mem::replace(&mut offered, true) {
            return None;
        }
        write(&mut frame[..30], to.endpoint, 7);
        Some(Outgoing { marked, ..Outgoing::new(to.nic, to.endpoint, 30) })
    })
}

#[test]
fn frames_on_the_wire_are_as_documented() {
    let to = To { nic: OTHER, endpoint: 9 };
    let (mut port, tap, _host) = on_tap();
    assert_eq!(offer(&mut port, to, true).unwrap(), Transmitted::Drained);
    let mut frame = Vec::new();
    until("a frame on the wire", || ok(tap.transmit(0, &mut frame)));
    let header = [&OTHER.0[..], &port.nic_id().0, &[0x86, 0xdf]].concat();
    assert_eq!(frame[..header.len()], header);
    assert_eq!(read(&frame[header.len()..], 9, 30), 7);
    assert_eq!(frame.len(), header.len() + 30);
}

/// Frames of a large message wake no thread before the last that was asked for, and come in order;
/// other frames may overtake them.
#[test]
fn frames_that_more_follow_wake_no_thread() {
    let veth = Veth::new(1500);
    let (mut a, mut b) = (ok(veth.port(0, A)), ok(veth.port(1, B)));
    let to = b.nic_id();
    let mut send = |kinds: &[(FrameType, u8)]| {
        let mut kinds = kinds.iter().zip(0..);
        let mut offer = |frame: &mut [u8]| {
            let (&(frame_type, flags), number) = kinds.next()?;
            frame[..8].copy_from_slice(&[frame_type as u8, flags, B, A, 0, 0, 0, number]);
            Some(Outgoing::new(to, B, 60))
        };
        assert_eq!(a.transmit(&mut offer).unwrap(), Transmitted::Drained);
    };
    send(&[(FrameType::Reply, 0); 3]);
    assert!(!b.arm().unwrap() && !sleep_for(&b, Duration::from_millis(100)));
    // Somebody looks.
    assert_eq!(take(&mut b, 3).len(), 3);
    let quiet = [(FrameType::Reply, 0), (FrameType::Small, 0), (FrameType::Reply, 1)];
    for last in [FLAG_MARK, FLAG_ASK] {
        send(&[&quiet[..], &[(FrameType::Reply, last)]].concat());
        assert!(sleep(&b, PollFlags::IN));
        b.clear().unwrap();
        let frames = take(&mut b, 4);
        let numbers = |is_reply| -> Vec<_> {
            let kind = |frame: &&(_, Vec<u8>)| (frame.1[0] == FrameType::Reply as u8) == is_reply;
            frames.iter().filter(kind).map(|(_, frame)| frame[7]).collect()
        };
        assert_eq!([numbers(true), numbers(false)], [vec![0, 2, 3], vec![1]]);
    }
}

#[test]
fn only_frames_for_the_port_are_taken_from_the_wire() {
    let (mut port, tap, _host) = on_tap();
    let own = port.nic_id();
    let mut body = [0; 46];
    write(&mut body, A, 1);
    let frame = |to: NicId, from: NicId, kind: &[u8], number, endpoint| {
        let mut body = [0; 46];
        write(&mut body, endpoint, number);
        [&to.0[..], &from.0, kind, &body].concat()
    };
    const MX: &[u8] = &[0x86, 0xdf];
    let tagged = &[0x81, 0, 0xc0, 5, 0x86, 0xdf];
    for frame in [
        frame(own, OTHER, MX, 1, A),
        frame(OTHER, OTHER, MX, 2, A),
        frame(own, OTHER, &[0x08, 0x00], 3, A),
        frame(own, OTHER, MX, 4, B),
        frame(own, OTHER, tagged, 5, A),
        frame(own, OTHER, tagged, 6, B),
        frame(own, NicId([1; 6]), MX, 7, A),
        frame(own, OTHER, MX, 8, A)[..16].to_vec(),
        frame(own, OTHER, MX, 9, A),
    ] {
        ok(tap.deliver(0, &frame));
    }
    let came = take(&mut port, 3);
    assert!(came.iter().all(|(from, frame)| *from == OTHER && frame.len() == 46));
    let numbers: Vec<_> = came.iter().map(|(_, frame)| read(frame, A, 46)).collect();
    assert_eq!(numbers, [1, 5, 9]);
    assert_eq!(port.counters().frames_in, 3);
    // Longer than the MTU, as from a peer whose MTU is larger.
    let mut long = frame(own, OTHER, MX, 10, A);
    long.resize(1600, 0);
    ok(tap.deliver(0, &long));
    until("it is counted", || {
        assert!(drain(&mut port).is_empty());
        port.counters().too_long > 0
    });
    assert_eq!(port.counters().too_long, 1);
}

#[test]
fn full_interface_takes_each_frame_once() {
    const FRAMES: u32 = 5000;
    let (mut port, tap, _host) = on_tap();
    let (mut written, mut next, mut full) = (0, 0, 0);
    let mut frame = Vec::new();
    until("all frames on the wire", || {
        let outcome = port.transmit(&mut |frame: &mut [u8]| {
            let number = (written < FRAMES).then_some(written)?;
            written += 1;
            write(&mut frame[..60], B, number);
            Some(Outgoing::new(OTHER, B, 60))
        });
        full += u64::from(outcome.unwrap() != Transmitted::Drained);
        for _ in 0..100 {
            if ok(tap.transmit(0, &mut frame)) {
                assert_eq!(read(&frame[14..], B, 60), next);
                next += 1;
            }
        }
        next == FRAMES
    });
    let counters = port.counters();
    assert!(full > 0, "a queue of 1000 frames took {FRAMES}");
    assert_eq!((counters.full, counters.frames_out), (full, FRAMES.into()));
}

#[test]
fn endpoints_of_one_interface_get_their_own_frames() {
    let veth = Veth::new(1500);
    let mut a = ok(veth.port(0, A));
    let mut b = [1, 2].map(|endpoint| ok(veth.port(1, endpoint)));
    let taken = veth.port(1, 2).err().unwrap().to_string();
    assert!(taken.contains("endpoint 2 of m0: it is taken by process"), "{taken}");
    // The other host has numbers of its own.
    ok(veth.port(0, 2));
    for number in 0..200 {
        send(&mut a, To::port(&b[number as usize % 2]), &[(number, 60)]);
    }
    for (port, odd) in b.iter_mut().zip(0..) {
        let numbers: Vec<_> = take(port, 100).iter().map(|(_, frame)| number(frame)).collect();
        assert_eq!(numbers, (0..200).filter(|number| number % 2 == odd).collect::<Vec<_>>());
    }
    drop(b);
    ok(veth.port(1, 2));
}

#[test]
fn interface_that_goes_down_is_named_and_works_when_it_is_back() {
    let veth = Veth::new(1500);
    let mut a = ok(veth.port(0, A));
    let mut b = ok(veth.port(1, B));
    let to = To::port(&b);
    veth.ip(0, "link set m0 down");
    assert!(sleep(&a, PollFlags::IN), "the interface went down, and no thread wakes");
    let error = a.clear().unwrap_err();
    assert!(matches!(error, PortError::Down { .. }), "{error}");
    a.clear().unwrap();
    let down = offer(&mut a, to, false).unwrap_err().to_string();
    assert_eq!(down, "send through m0: the interface is down; bring it up: ip link set m0 up");
    let opened = veth.port(0, 4).err().unwrap();
    assert!(matches!(opened, PortError::Down { .. }), "{opened}");

    veth.ip(0, "link set m0 up");
    until("the frame that was kept is sent", || a.transmit(&mut |_: &mut [u8]| None).is_ok());
    until("it arrives", || {
        let outcome = a.transmit(&mut |_: &mut [u8]| None).unwrap();
        outcome == Transmitted::Drained && !drain(&mut b).is_empty()
    });

    veth.ip(0, "link delete m0");
    let error = a.clear().unwrap_err();
    assert!(matches!(error, PortError::Gone { .. }), "{error}");
    let gone = offer(&mut a, to, false).unwrap_err().to_string();
    assert!(gone.starts_with("send through m0: the interface is gone"), "{gone}");
}

#[test]
fn smaller_mtu_is_reported_and_holds_no_other_frame_up() {
    let veth = Veth::new(1500);
    let mut a = ok(veth.port(0, A));
    let mut b = ok(veth.port(1, B));
    let to = To::port(&b);
    veth.ip(0, "link set m0 mtu 1000");
    let mut lengths = [60, 1500, 61].iter();
    let mut offer = |frame: &mut [u8]| {
        let length = *lengths.next()?;
        write(&mut frame[..length], B, length as u32);
        Some(Outgoing::new(to.nic, B, length))
    };
    let error = a.transmit(&mut offer).unwrap_err().to_string();
    assert!(error.contains("ip link set m0 mtu 1500"), "{error}");
    assert_eq!(a.transmit(&mut offer).unwrap(), Transmitted::Drained);
    let numbers: Vec<_> = take(&mut b, 2).iter().map(|(_, frame)| number(frame)).collect();
    assert_eq!(numbers, [60, 61]);
    assert_eq!(a.counters().refused, 1);
}

#[test]
fn interface_without_an_address_is_refused() {
    let host = ok(Host::create("a", &[Station::new("a", 1)]));
    let open = |name: &str| ok(host.enter_net(|| PacketPort::open(name, 1)));
    assert!(open("no-such").err().unwrap().to_string().contains("no-such"));
    // The loopback has one, of zeros, and more MTU than a port.
    assert_eq!(ok(open("lo")).mtu(), 9216);
}

#[test]
fn nic_that_goes_away_wakes_and_is_reported() {
    let nic = Nic::start(NicSettings::default());
    let mut port = ok(VirtioPort::connect(&nic.path(0), A, DriverSettings::default()));
    assert!(!port.arm().unwrap());
    port.clear().unwrap();
    drop(nic);
    assert!(sleep(&port, PollFlags::IN), "the NIC went away, and no thread wakes");
    assert!(matches!(port.clear().unwrap_err(), PortError::Driver(_)));
}
