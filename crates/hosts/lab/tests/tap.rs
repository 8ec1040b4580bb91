//! TAP ports: frames go both ways between real network stacks, and every refusal says why.
//!
//! These tests need root and /dev/net/tun.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use lab::host::Host;
use lab::napi::Stack;
use lab::tap::Tap;
use lab::{Lab, LabSettings};
use sys::netlink::{InterfaceState, Netlink};

use crate::common::{ok, wired};

fn lab(queues: u16, mtu: u32) -> Lab {
    ok(Lab::create(&LabSettings { queues, mtu, ..LabSettings::default() }))
}

fn link(host: &Host, name: &str) -> InterfaceState {
    ok(ok(host.enter_net(|| Netlink::open()?.link(name))))
}

/// Sends `size` bytes from host `a` to host `b` and back.
fn round_trip(lab: &Lab, ips: [IpAddr; 2], size: usize) {
    let bind = |end: usize| ok(ok(lab.hosts[end].enter_net(|| UdpSocket::bind((ips[end], 9)))));
    let (asker, answerer) = (bind(0), bind(1));
    for socket in [&asker, &answerer] {
        ok(socket.set_read_timeout(Some(Duration::from_secs(60))));
    }
    let mut buffer = vec![0; size + 1];
    ok(asker.send_to(&vec![7; size], (ips[1], 9)));
    let (length, from) = ok(answerer.recv_from(&mut buffer));
    assert_eq!((length, from.ip()), (size, ips[0]));
    ok(answerer.send_to(&buffer[..length], from));
    assert_eq!(ok(asker.recv_from(&mut buffer)).0, size);
}

fn all_round_trips(lab: &Lab, size: usize) {
    wired(lab, || {
        round_trip(lab, [0, 1].map(|end: usize| lab.stations[end].ipv4.into()), size);
        round_trip(lab, [0, 1].map(|end: usize| lab.stations[end].ipv6.into()), size);
    });
}

#[test]
fn round_trip__any_queues_and_jumbo_frames() {
    for (queues, mtu, size) in [(1, 1500, 1000), (4, 1500, 1000), (1, 9000, 8900)] {
        let lab = lab(queues, mtu);
        assert_eq!(lab.taps[0].queues(), usize::from(queues));
        all_round_trips(&lab, size);
    }
}

#[test]
fn link__is_as_the_settings_say() {
    let lab = lab(1, 4000);
    for (end, name) in ["a0", "b0"].into_iter().enumerate() {
        let link = link(&lab.hosts[end], name);
        assert!(link.is_up);
        assert_eq!((link.mtu, link.tx_queue_len), (4000, 1000));
        assert_eq!(link.mac, lab.stations[end].mac);
        assert_eq!(lab.taps[end].name(), name);
    }
}

#[test]
fn link__counts_what_the_host_sends_and_receives() {
    let lab = lab(1, 1500);
    let before = link(&lab.hosts[0], "a0").stats;
    all_round_trips(&lab, 1000);
    let after = link(&lab.hosts[0], "a0").stats;
    // At least a neighbour solicitation and a datagram for each kind of address.
    assert!(after.tx_packets >= before.tx_packets + 4, "{before:?} {after:?}");
    assert!(after.rx_packets >= before.rx_packets + 4, "{before:?} {after:?}");
    assert!(after.rx_bytes > before.rx_bytes + 2000, "{before:?} {after:?}");
}

#[test]
fn read__gives_whole_frames_and_never_blocks() {
    let lab = lab(1, 1500);
    let mut frame = Vec::new();
    // A stranger on the network: the kernel asks who has it.
    let socket = ok(ok(lab.hosts[0].enter_net(|| UdpSocket::bind("10.9.0.1:0"))));
    ok(socket.send_to(b"?", "10.9.0.77:9"));
    let mut seen = false;
    while ok(lab.taps[0].transmit(0, &mut frame)) {
        let arp = frame[12..14] == [0x08, 0x06];
        if arp {
            assert_eq!(frame[..6], [0xff; 6]);
            assert_eq!(frame[6..12], lab.stations[0].mac);
            assert_eq!(frame.len(), 42);
        }
        seen |= arp;
    }
    assert!(seen, "the question was not sent");
    assert!(frame.is_empty());
}

#[test]
fn up__the_link_is_quiet() {
    let lab = lab(1, 1500);
    thread::sleep(Duration::from_millis(700));
    let mut frame = Vec::new();
    while ok(lab.taps[0].transmit(0, &mut frame)) {
        // IPv6, hop-by-hop option, ICMPv6 multicast listener report. Only the group of its own
        // address may be reported: no router solicitation, no probe for a duplicate.
        let is_report = frame[12..14] == [0x86, 0xdd] && frame[20] == 0 && frame[62] == 143;
        assert!(is_report, "{frame:02x?}");
    }
}

#[test]
fn write__fails_while_the_interface_is_down() {
    let host = ok(Host::create("a", &[]));
    let tap = ok(Tap::create(&host, "t0", 1, 1500));
    let error = tap.deliver(0, &[0; 60]).expect_err("it is down");
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
}

#[test]
fn create__name_in_use() {
    for (first, second) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let lab = lab(first, 1500);
        let error = Tap::create(&lab.hosts[0], "a0", second, 1500).expect_err("there is an a0");
        assert!(error.to_string().starts_with("create tap a0 in host a: "), "{error}");
        assert!(error.to_string().contains("name is in use"), "{error}");
        // The same name in another host is another interface.
        ok(Tap::create(&lab.hosts[1], "a0", second, 1500));
    }
}

#[test]
fn create__impossible_settings() {
    let host = ok(Host::create("a", &[]));
    for name in ["", "sixteen-letters-", "a b", "a/b", "t%d"] {
        let error = Tap::create(&host, name, 1, 1500).expect_err("the name is bad");
        assert!(error.to_string().contains("not an interface name"), "{error}");
    }
    for queues in [0, 257] {
        let error = Tap::create(&host, "t0", queues, 1500).expect_err("the number is bad");
        assert!(error.to_string().contains("out of range"), "{error}");
    }
    let error = Lab::create(&LabSettings { mtu: 500, ..LabSettings::default() }).expect_err("500");
    assert!(error.to_string().contains("mtu 500: out of range"), "{error}");
}

#[test]
fn netlink__no_such_link() {
    let host = ok(Host::create("a", &[]));
    let outcome = ok(host.enter_net(|| Netlink::open()?.link("x0")));
    let error = outcome.expect_err("there is no x0");
    assert!(error.to_string().starts_with("read link x0: No such device"), "{error}");
}

#[test]
fn netlink__no_ipv6_is_distinguished() {
    let host = ok(Host::create("a", &[]));
    let _tap = ok(Tap::create(&host, "t0", 1, 1500));
    let add = |ip: IpAddr| {
        ok(host.enter_net(|| {
            ok(fs::write("/proc/sys/net/ipv6/conf/t0/disable_ipv6", "1"));
            Netlink::open()?.add_address("t0", ip, 64)
        }))
    };
    let missing = add("fd09::1".parse().expect("an address")).expect_err("IPv6 is off");
    assert!(missing.is_no_ipv6(), "{missing}");
    let invalid = add("10.9.0.1".parse().expect("an address")).expect_err("64 is too long");
    assert!(!invalid.is_no_ipv6(), "{invalid}");
}
