//! Hosts by name, over a segment.

use std::time::{Duration, Instant};

use lab::host::Host;
use lab::napi::Stack;
use lab::station::Station;
use lab::tap::Tap;
use mx::address::{Address, NicId};
use mx::config::Config;
use mx::wire::{ETHER_TYPE, VERSION};
use mx_io::discovery::{DiscoveredEndpoint, Peers, ResolveError, Target, discover, resolve};
use mx_io::endpoint::{Endpoint, EndpointOptions, MxError, WaitMode};
use mx_io::port::local::LocalPort;
use mx_io::port::udp::UdpPort;
use sys::netlink::Netlink;

use super::common::ok;
use super::frames::{PATIENCE, until};
use super::kinds::{LOCALHOST, Veth};
use super::messages::{End, open};

const SOON: Duration = Duration::from_secs(2);
const OTHER: NicId = NicId([2, 0, 0, 0, 0, 9]);

fn named(veth: &Veth, host: usize, number: u8, name: &str) -> End {
    let end = open(veth, host, number, WaitMode::Sleep);
    assert!(end.set_host_name(name));
    end
}

fn found(name: &str, end: &End) -> DiscoveredEndpoint {
    DiscoveredEndpoint { host: name.to_owned(), address: end.address(), version: VERSION }
}

/// Asks until all have answered, which a busy machine may do late; nothing else may be found.
fn all_are_found(
    expected: &[DiscoveredEndpoint],
    mut ask: impl FnMut() -> Vec<DiscoveredEndpoint>,
) {
    until("the answers of all hosts", || {
        let found = ask();
        assert!(found.iter().all(|it| expected.contains(it)), "{found:?}");
        found == expected
    });
}

#[test]
fn hosts_find_each_other_by_name() {
    let veth = Veth::new(1500);
    let a1 = named(&veth, 0, 1, "alpha");
    let a2 = named(&veth, 0, 2, "alpha");
    let b1 = named(&veth, 1, 1, "beta");
    let b9 = named(&veth, 1, 9, "beta");

    let mut others = vec![found("alpha", &a2), found("beta", &b1), found("beta", &b9)];
    others.sort_by_key(|it| it.address);
    all_are_found(&others, || ok(a1.discover(None, SOON)));
    let of_beta = [found("beta", &b1), found("beta", &b9)];
    all_are_found(&of_beta, || ok(a1.discover(Some("beta"), SOON)));
    assert_eq!(ok(b1.discover(Some("gamma"), SOON)), []);

    // One who is there is found at once; one who is not there is on a host that is.
    let begin = Instant::now();
    let target: Target = ok("beta/9".parse());
    assert_eq!(ok(a1.resolve(&target, &Peers::default(), PATIENCE)), b9.address());
    assert!(begin.elapsed() < PATIENCE / 2);
    let (absent, expected) = (ok("beta/77".parse()), Address { endpoint: 77, ..b9.address() });
    until("an answer of the host", || {
        a1.resolve(&absent, &Peers::default(), SOON).is_ok_and(|found| found == expected)
    });
    let nobody = a1.resolve(&ok("gamma/1".parse()), &Peers::default(), SOON).unwrap_err();
    assert!(matches!(nobody, MxError::Resolve(ResolveError::Nobody { .. })), "{nobody}");
    assert!(nobody.to_string().contains("gamma/1"), "{nobody}");

    // The file comes first, and so do addresses.
    let peers = ok(Peers::parse("02:00:00:00:00:09 beta").map_err(|(_, what)| what));
    let expected = Address { nic: OTHER, endpoint: 9 };
    assert_eq!(ok(a1.resolve(&target, &peers, PATIENCE)), expected);
    assert_eq!(ok(a1.resolve(&Target::Address(expected), &Peers::default(), PATIENCE)), expected);
}

#[test]
fn port_without_an_engine_finds_hosts_too() {
    let veth = Veth::new(1500);
    let (near, far) = (named(&veth, 0, 1, "alpha"), named(&veth, 1, 1, "beta"));
    let mut port = ok(veth.local_port(0, 250));
    let mut expected = vec![found("alpha", &near), found("beta", &far)];
    expected.sort_by_key(|it| it.address);
    all_are_found(&expected, || ok(discover(&mut port, None, SOON)));
    let target = ok("alpha/1".parse());
    assert_eq!(ok(resolve(&mut port, &target, &Peers::default(), PATIENCE)), near.address());
    // It does not answer itself.
    all_are_found(&[found("beta", &far)], || ok(near.discover(None, SOON)));
}

#[test]
fn only_the_file_knows_hosts_over_udp() {
    let mut port = ok(UdpPort::open(1, LOCALHOST));
    let peers = ok(Peers::parse("10.9.0.1:9000 alpha").map_err(|(_, what)| what));
    let known = ok(resolve(&mut port, &ok("alpha/3".parse()), &peers, PATIENCE));
    assert_eq!(known, Address { nic: NicId([10, 9, 0, 1, 0x23, 0x28]), endpoint: 3 });
    let unknown = resolve(&mut port, &ok("beta/3".parse()), &peers, SOON).unwrap_err();
    assert!(matches!(unknown, ResolveError::Nobody { .. }), "{unknown}");
}

fn frame(kind: u8, (to, from): (u8, u8), nonce: u64, sender: NicId, name: &[u8]) -> Vec<u8> {
    let header = [kind, 0, to, from];
    let rest = [from, name.len() as u8, 0, 1, 0, 0];
    [&header[..], &nonce.to_be_bytes(), &sender.0, &rest, name].concat()
}

fn ethernet(to: NicId, from: NicId, body: &[u8]) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &ETHER_TYPE.to_be_bytes(), body].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

#[test]
fn forged_and_broken_frames_are_ignored() {
    let host = ok(Host::create("a", &[Station::new("a", 1)]));
    let tap = ok(Tap::create(&host, "m0", 1, 1500));
    let port = ok(ok(host.enter_net(|| {
        ok(ok(Netlink::open()).silence_ipv6("m0"));
        ok(ok(Netlink::open()).up("m0"));
        LocalPort::open("m0", 3)
    })));
    let end: End =
        ok(Endpoint::open(Box::new(port), Config::default(), EndpointOptions::default()));
    assert!(end.set_host_name("alpha") && !end.set_host_name("") && !end.set_host_name("a b"));
    let own = end.address().nic;
    let everybody = NicId([0xff; 6]);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ok(end.discover(None, SOON * 2)));
        let question = next(&tap);
        assert_eq!((&question[..6], question[14], question[16]), (&everybody.0[..], 3, 255));
        let nonce = u64::from_be_bytes(question[18..26].try_into().unwrap());
        let answer = |nonce, sender, name: &[u8]| frame(4, (3, 7), nonce, sender, name);
        let mut long = answer(nonce, OTHER, &[b'x'; 200]);
        long[19] = 81;
        for body in [
            answer(nonce, NicId([2, 0, 0, 0, 0, 8]), b"other-nic"),
            answer(nonce ^ 1, OTHER, b"no-question"),
            answer(nonce, OTHER, b"spa ce"),
            answer(nonce, OTHER, b""),
            answer(nonce, OTHER, b"\x1b[31mred"),
            frame(4, (4, 7), nonce, OTHER, b"to-another"),
            long,
            vec![4, 0, 3],
            vec![4, 0, 3, 7],
            vec![3, 0, 3],
            answer(nonce, OTHER, b"real"),
        ] {
            ok(tap.deliver(0, &ethernet(own, OTHER, &body)));
        }
        let expected = Address { nic: OTHER, endpoint: 7 };
        let real = DiscoveredEndpoint { host: "real".to_owned(), address: expected, version: 1 };
        assert_eq!(asking.join().unwrap(), [real]);
    });

    // Many questions at once: few answers.
    while ok(tap.transmit(0, &mut Vec::new())) {}
    let begin = Instant::now();
    for nonce in 0..2_000 {
        ok(tap.deliver(0, &ethernet(everybody, OTHER, &frame(3, (255, 7), nonce, OTHER, b""))));
    }
    let (mut answers, asked, mut bytes) = (0, Instant::now(), Vec::new());
    while asked.elapsed() < SOON || answers == 0 {
        if ok(tap.transmit(0, &mut bytes)) {
            assert_eq!((&bytes[..6], bytes[14], bytes[16]), (&OTHER.0[..], 4, 7));
            assert_eq!(&bytes[38..43], b"alpha");
            answers += 1;
        }
    }
    // 32 at once, and one more each 10 ms.
    let most = 32 + begin.elapsed().as_millis() / 10;
    assert!((1..=most).contains(&answers), "{answers} answers, at most {most}");
}

fn next(tap: &Tap) -> Vec<u8> {
    let (begin, mut frame) = (Instant::now(), Vec::new());
    while !ok(tap.transmit(0, &mut frame)) {
        assert!(begin.elapsed() < PATIENCE, "nothing is sent");
        std::thread::yield_now();
    }
    frame
}
