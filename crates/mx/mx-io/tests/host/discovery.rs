//! Hosts by name, over a segment.

use std::time::{Duration, Instant};

use mx::address::{Address, NicId};
use mx::wire::VERSION;
use mx_io::discovery::{DiscoveredEndpoint, Peers, Target, discover};
use mx_io::endpoint::{MxError, WaitMode};

use super::common::ok;
use super::frames::{PATIENCE, until};
use super::kinds::Veth;
use super::messages::{TestEndpoint, open};

const SOON: Duration = Duration::from_secs(2);
const OTHER: NicId = NicId([2, 0, 0, 0, 0, 9]);

fn named(veth: &Veth, host: usize, number: u8, name: &str) -> TestEndpoint {
    let end = open(veth, host, number, WaitMode::Sleep);
    assert!(end.set_host_name(name));
    end
}

fn found(name: &str, end: &TestEndpoint) -> DiscoveredEndpoint {
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
    let error = a1.resolve(&ok("gamma/1".parse()), &Peers::default(), SOON).unwrap_err();
    assert!(matches!(error, MxError::Resolve { .. }), "{error}");
    assert!(error.to_string().contains("gamma/1"), "{error}");

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
    // It does not answer itself.
    all_are_found(&[found("beta", &far)], || ok(near.discover(None, SOON)));
}
