//! Endpoints of one interface, and of two, with the default port.

use bytes::Bytes;
use mx::config::Config;
use mx::matching::Match;
use mx_io::endpoint::{Endpoint, EndpointOptions, Progress, WaitMode};
use mx_io::port::local::LocalPort;

use super::common::ok;
use super::frames::{PATIENCE, until};
use super::kinds::{LOCALHOST, Veth};

pub(crate) type TestEndpoint = Endpoint<Bytes, Vec<u8>>;

pub(crate) fn open(veth: &Veth, host: usize, number: u8, waiting: WaitMode) -> TestEndpoint {
    let life = EndpointOptions { progress: Progress::Thread, waiting };
    ok(TestEndpoint::open(Box::new(ok(veth.local_port(host, number))), Config::default(), life))
}

#[test]
fn messages_go_within_the_host_and_beyond() {
    let veth = Veth::new(1500);
    for waiting in [WaitMode::Sleep, WaitMode::Spin] {
        let ends =
            [(0, 1), (0, 2), (1, 1)].map(|(host, number)| open(&veth, host, number, waiting));
        for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 1), (0, 0)] {
            let (from, to) = (&ends[from], &ends[to]);
            let peer = ok(from.connect(to.address(), 0, PATIENCE));
            for size in [0, 100, 10_000, 2_000_000] {
                let message = Bytes::from((0..size).map(|at| at as u8).collect::<Vec<_>>());
                let receive = ok(to.irecv(None, Match::exact(7), vec![0; size]));
                let sent = ok(from.isend(peer, 7, message.clone()));
                let got = ok(to.wait(receive, Some(PATIENCE))).expect("a message");
                assert_eq!((got.status.result, got.sink.unwrap()), (Ok(()), message.into()));
                let sent = ok(from.wait(sent, Some(PATIENCE))).expect("it was sent");
                assert_eq!(sent.status.result, Ok(()));
            }
        }
    }
}

#[test]
fn peer_on_the_same_host_that_goes_away_is_lost() {
    let veth = Veth::new(1500);
    let (a, b) = (open(&veth, 0, 1, WaitMode::Sleep), open(&veth, 0, 2, WaitMode::Sleep));
    let peer = ok(a.connect(b.address(), 0, PATIENCE));
    drop(b);
    // Another life of the same endpoint can be talked to.
    let b = open(&veth, 0, 2, WaitMode::Sleep);
    ok(a.isend(peer, 1, vec![1; 100].into()));
    until("the end of the old peer", || a.peers().is_empty());
    let again = ok(a.connect(b.address(), 0, PATIENCE));
    let receive = ok(b.irecv(None, Match::exact(5), vec![0; 4]));
    ok(a.isend(again, 5, vec![9; 4].into()));
    let got = ok(b.wait(receive, Some(PATIENCE))).expect("a message");
    assert_eq!(got.sink.unwrap(), [9; 4]);
}

#[test]
fn more_than_there_is_credit_for_waits_and_nothing_is_lost() {
    const COUNT: usize = 2_600;
    const SIZE: usize = 30_000;
    let data = Bytes::from((0..SIZE + COUNT).map(|at| (at / 3) as u8).collect::<Vec<_>>());
    for waiting in [WaitMode::Sleep, WaitMode::Spin] {
        let [a, b] = [1, 2].map(|number| {
            let port = ok(LocalPort::over_udp(number, LOCALHOST));
            let life = EndpointOptions { progress: Progress::Thread, waiting };
            ok(TestEndpoint::open(Box::new(port), Config::default(), life))
        });
        let peer = ok(a.connect(b.address(), 0, PATIENCE));
        let part = |number: usize| data.slice(number..number + SIZE);
        let send = |number| ok(a.isend(peer, 6, part(number)));
        let within = |end: &TestEndpoint, request| match ok(end.wait(request, Some(PATIENCE))) {
            Some(completed) => completed,
            None => panic!("{}\n{}", a.dump(), b.dump()),
        };
        for number in 0..100 {
            let sent = send(number);
            assert_eq!(within(&a, sent).status.result, Ok(()));
            let receive = ok(b.irecv(None, Match::exact(6), vec![0; SIZE]));
            assert!(within(&b, receive).sink.unwrap() == part(number), "{number}");
        }
        let sends: Vec<_> = (0..COUNT).map(send).collect();
        for number in 0..COUNT {
            let receive = ok(b.irecv(None, Match::exact(6), vec![0; SIZE]));
            assert!(within(&b, receive).sink.unwrap() == part(number), "{number}");
        }
        for send in sends {
            assert_eq!(within(&a, send).status.result, Ok(()));
        }
    }
}
