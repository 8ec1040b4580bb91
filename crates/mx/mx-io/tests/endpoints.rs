//! Live endpoints, over a wire within the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mx::address::Address;
use mx::config::Config;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::status::RequestError;
use mx_io::endpoint::{Completed, Endpoint, EndpointOptions, Label, Progress, RequestId, WaitMode};
use mx_io::port::NicId;
use mx_io::port::wire::Wire;
use mx_io::report;

type TestEndpoint = Endpoint<Bytes, Vec<u8>>;

const SECOND: Duration = Duration::from_secs(1);
/// Far longer than anything takes, however busy the machine is.
const LONG: Duration = Duration::from_secs(300);

fn lives() -> impl Iterator<Item = EndpointOptions> {
    let waitings = [WaitMode::Sleep, WaitMode::Spin, WaitMode::Hybrid(Duration::from_micros(20))];
    waitings.into_iter().flat_map(|waiting| {
        [Progress::Thread, Progress::Manual].map(|progress| EndpointOptions { progress, waiting })
    })
}

fn pair(config: Config, life: EndpointOptions) -> (TestEndpoint, TestEndpoint) {
    let wire = Wire::new(1500, 512).unwrap();
    (open(&wire, 1, config, life), open(&wire, 2, config, life))
}

fn open(wire: &Wire, number: u8, config: Config, life: EndpointOptions) -> TestEndpoint {
    let port = wire.port(NicId([2, 0, 0, 0, 0, number]), number).unwrap();
    TestEndpoint::open(Box::new(port), config, life).unwrap()
}

/// Peers that are connected; without progress threads both have to be driven.
fn connect(a: &TestEndpoint, b: &TestEndpoint) -> PeerId {
    scope(|scope| {
        let connecting = scope.spawn(|| a.connect(b.address(), 0, LONG));
        while !connecting.is_finished() {
            b.progress().unwrap();
        }
        connecting.join().unwrap().unwrap()
    })
}

fn receive(end: &TestEndpoint, size: usize) -> Completed<Vec<u8>> {
    let request = end.irecv(None, Match::ANY, vec![0; size]).unwrap();
    end.wait(request, Some(LONG)).unwrap().expect("a message")
}

#[test]
fn messages_go_back_and_forth_however_one_waits() {
    for life in lives() {
        let (a, b) = pair(Config::default(), life);
        let to_b = connect(&a, &b);
        let has_all = AtomicBool::new(false);
        scope(|scope| {
            scope.spawn(|| {
                for round in 0..200_u64 {
                    let got = receive(&b, 300_000);
                    assert_eq!(got.status.result, Ok(()));
                    let length = got.status.transferred as usize;
                    let mut data = got.sink.unwrap();
                    data.truncate(length);
                    let back = got.status.peer.unwrap();
                    let sent = b.isend(back, round, data.into()).unwrap();
                    assert!(b.wait(sent, Some(LONG)).unwrap().is_some());
                }
                // What was sent may still have to be fetched.
                let until = Instant::now() + LONG;
                while life.progress == Progress::Manual && !has_all.load(Ordering::Relaxed) {
                    assert!(Instant::now() < until, "{}", b.dump());
                    b.progress().unwrap();
                }
            });
            for round in 0..200_usize {
                let size = [0, 8, 100, 5_000, 32_768, 200_000][round % 6];
                let message = Bytes::from(vec![round as u8; size]);
                let sent = a.isend(to_b, 7, message.clone()).unwrap();
                let got = receive(&a, 300_000);
                assert_eq!(got.status.match_info, round as u64);
                assert_eq!(got.sink.unwrap()[..size], message);
                let sent = a.wait(sent, Some(LONG)).unwrap().unwrap();
                assert_eq!(sent.status.result, Ok(()));
            }
            has_all.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn progress_needs_no_application() {
    let life = EndpointOptions::default();
    let (a, b) = pair(Config::default(), life);
    let to_b = connect(&a, &b);
    let posted = b.irecv(None, Match::ANY, vec![0; 1 << 20]).unwrap();
    let sent = a.isend(to_b, 1, vec![9; 1 << 20].into()).unwrap();
    // No thread asks, and yet the megabyte is pulled: looking at counters drives nothing.
    let until = Instant::now() + LONG;
    while b.counters().0.messages_received == 0 {
        assert!(Instant::now() < until, "{}", b.dump());
        sleep(Duration::from_millis(5));
    }
    assert!(b.test(posted).unwrap().is_some());
    assert!(a.wait(sent, Some(LONG)).unwrap().is_some());
}

#[test]
fn several_threads_wait_for_their_own() {
    for waiting in [WaitMode::Sleep, WaitMode::Spin] {
        let (a, b) =
            pair(Config::default(), EndpointOptions { progress: Progress::Thread, waiting });
        let to_b = connect(&a, &b);
        let b = Arc::new(b);
        scope(|scope| {
            for number in 0..6_u64 {
                let b = Arc::clone(&b);
                scope.spawn(move || {
                    for round in 0..50_u64 {
                        let request = b.irecv(None, Match::exact(number), vec![0; 8]).unwrap();
                        let got = b.wait(request, Some(LONG)).unwrap().expect("mine");
                        assert_eq!(got.status.match_info, number);
                        assert_eq!(got.sink.unwrap(), round.to_ne_bytes());
                    }
                });
            }
            for round in 0..50_u64 {
                for number in 0..6 {
                    a.isend(to_b, number, round.to_ne_bytes().to_vec().into()).unwrap();
                }
            }
        });
        let completed = a.wait_any(Match::ANY, Some(LONG)).unwrap().expect("sends have ended");
        assert!(matches!(completed.request, RequestId::Send(_)));
    }
}

#[test]
fn thread_that_waits_can_be_woken() {
    let (a, _b) = pair(Config::default(), EndpointOptions::default());
    let request = a.irecv(None, Match::ANY, vec![0; 8]).unwrap();
    assert!(a.wait(request, Some(Duration::from_millis(20))).unwrap().is_none());
    scope(|scope| {
        let waits: Vec<_> = (0..3).map(|_| scope.spawn(|| a.wait(request, None))).collect();
        // Each may not even have begun to wait.
        while !waits.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            a.wakeup();
            sleep(Duration::from_millis(1));
        }
        for wait in waits {
            assert!(wait.join().unwrap().unwrap().is_none());
        }
    });
    let RequestId::Receive(receive) = request else { panic!() };
    assert!(a.cancel(receive).unwrap());
    assert_eq!(a.wait(request, None).unwrap().unwrap().status.result, Err(RequestError::Cancelled));
}

#[test]
fn withdrawn_request_is_not_reported() {
    let (a, b) = pair(Config::default(), EndpointOptions::default());
    let nowhere = Address { endpoint: 77, ..b.address() };
    scope(|scope| {
        let waits = scope.spawn(|| a.wait_any(Match::ANY, None).unwrap());
        for _ in 0..2000 {
            let receive = a.irecv(None, Match::ANY, vec![0; 8]).unwrap();
            assert!(a.withdraw(receive).unwrap());
            assert!(!a.withdraw(receive).unwrap(), "once is enough");
        }
        let connecting = a.iconnect(nowhere, 0, SECOND).unwrap();
        assert!(a.withdraw(connecting).unwrap());
        // It may not even have begun to wait.
        while !waits.is_finished() {
            a.wakeup();
            sleep(Duration::from_millis(1));
        }
        assert!(waits.join().unwrap().is_none(), "the end of a withdrawn request was reported");
    });
    let peer = connect(&b, &a);
    let late = a.irecv(None, Match::ANY, vec![0; 8]).unwrap();
    b.isend(peer, 7, Bytes::from_static(b"hello")).unwrap();
    while a.test_any(Match::exact(7)).unwrap().map(|completed| completed.request) != Some(late) {}
    assert!(!a.withdraw(late).unwrap());
}

#[test]
fn connection_that_has_ended_cannot_be_withdrawn() {
    let (a, b) = pair(Config::default(), EndpointOptions::default());
    let label = Label { match_info: 0, context: 1 };
    let request = a.iconnect_with(b.address(), 0, LONG, label).unwrap();
    assert_eq!(a.peek_context(Some(LONG)).unwrap(), Some(1));
    assert!(!a.withdraw(request).unwrap());
    let ended = a.wait(request, Some(LONG)).unwrap().expect("its end is still reported");
    assert_eq!(ended.status.result, Ok(()));
}

#[test]
fn last_words_of_a_peer_do_not_show_that_it_is_alive() {
    let wire = Wire::new(1500, 512).unwrap();
    let open = |number, progress| {
        open(
            &wire,
            number,
            Config::default(),
            EndpointOptions { progress, ..EndpointOptions::default() },
        )
    };
    // `a` processes nothing between its calls.
    let (a, b) = (open(1, Progress::Manual), open(2, Progress::Thread));
    let old = connect(&a, &b);
    a.isend(old, 7, Bytes::from_static(b"hello")).unwrap();
    let to_a = receive(&b, 5).status.peer.unwrap();
    for _ in 0..200 {
        b.isend(to_a, 7, Bytes::from_static(b"farewell")).unwrap();
    }
    drop(b);
    let b = open(2, Progress::Thread);
    assert_ne!(connect(&a, &b), old, "a connection to a life that is over");
}

#[test]
fn closing_waits_for_what_is_on_its_way() {
    let (a, b) = pair(Config::default(), EndpointOptions::default());
    let to_b = connect(&a, &b);
    let large = b.irecv(None, Match::exact(1), vec![0; 3 << 20]).unwrap();
    a.isend(to_b, 1, vec![5; 3 << 20].into()).unwrap();
    a.isend(to_b, 2, vec![6; 20_000].into()).unwrap();
    let closed = a.close(LONG);
    println!("{closed:?} {}", b.dump());
    closed.unwrap();
    let got = b.wait(large, Some(LONG)).unwrap().unwrap();
    assert_eq!((got.status.result, got.status.transferred), (Ok(()), 3 << 20));
    assert_eq!(receive(&b, 20_000).sink.unwrap(), vec![6; 20_000]);
}

#[test]
fn others_may_look() {
    let (a, b) = pair(Config::default(), EndpointOptions::default());
    let to_b = connect(&a, &b);
    a.isend(to_b, 1, vec![5; 100].into()).unwrap();
    receive(&b, 100);
    let observer = b.observer();
    let served = report::serve(observer.clone()).unwrap();
    let address = b.address().to_string();
    assert!(report::running().unwrap().contains(&address));
    let seen = report::ask(&address).unwrap();
    assert_eq!((seen.pid, &seen.address), (std::process::id(), &address));
    let counted = |name| seen.counters.iter().find(|(counter, _)| counter == name).unwrap().1;
    assert_eq!(counted("messages-received"), 1, "{seen:?}");
    // On a busy machine frames go again.
    assert!(counted("received-small") >= 1 && counted("sent-connect") >= 1, "{seen:?}");
    assert!(seen.text().contains("port-frames-in: "), "{seen:?}");
    assert_eq!(report::serve(observer.clone()).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    drop(served);
    assert!(report::ask(&address).is_err());
    drop(b);
    assert!(observer.look().is_none());
}

#[test]
fn ends_come_in_their_order_with_their_contexts() {
    for life in lives() {
        let (a, b) = pair(Config::default(), life);
        let to_b = connect(&a, &b);
        // Of the connection.
        a.drain(9, |_, _| ()).unwrap();
        for context in 0..9 {
            let post = |now, engine: &mut mx::endpoint::Endpoint<Bytes, Vec<u8>>| {
                engine.irecv(now, None, Match::exact(context), vec![0; 8], 100 + context)
            };
            b.with_engine(|engine, now| post(now, engine)).unwrap();
        }
        for context in 0..9 {
            let message = Bytes::from_static(b"12345678");
            a.with_engine(|engine, now| engine.isend(now, to_b, context, message, context))
                .unwrap();
        }
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        let until = Instant::now() + LONG;
        while sent.len() + received.len() < 18 && Instant::now() < until {
            a.drain(2, |_, end| sent.push(end.status.context)).unwrap();
            b.drain(2, |_, end| received.push(end.status.context)).unwrap();
        }
        assert_eq!(sent, (0..9).collect::<Vec<_>>());
        assert_eq!(received, (100..109).collect::<Vec<_>>());
    }
}
