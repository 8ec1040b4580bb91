//! Everything completes, whatever goes wrong on the way.

use std::thread::scope;
use std::time::Duration;

use bytes::Bytes;
use mx::config::Config;
use mx::matching::Match;
use mx::wire::FrameType;
use mx_io::endpoint::{Completed, Endpoint, EndpointOptions};
use mx_io::port::NicId;
use mx_io::port::faulty::{Fault, FaultyPort, Tally};
use mx_io::port::wire::Wire;

type TestEndpoint = Endpoint<Bytes, Vec<u8>>;

const PATIENCE: Duration = Duration::from_secs(300);

/// Two endpoints whose ports make these faults.
fn pair(faults: &str) -> [(TestEndpoint, Tally); 2] {
    let wire = Wire::new(1500, 512).unwrap();
    [1, 2].map(|number| {
        let port = wire.port(NicId([2, 0, 0, 0, 0, number]), number).unwrap();
        let port = FaultyPort::new(Box::new(port), &faults.parse().unwrap());
        let tally = port.tally();
        (
            TestEndpoint::open(Box::new(port), Config::default(), EndpointOptions::default())
                .unwrap(),
            tally,
        )
    })
}

fn wait(end: &TestEndpoint, request: mx_io::endpoint::RequestId) -> Completed<Vec<u8>> {
    end.wait(request, Some(PATIENCE)).unwrap().unwrap_or_else(|| panic!("hangs: {}", end.dump()))
}

/// Echoes messages of every class; how many faults there were.
fn echo(faults: &str, fault: Fault) -> u64 {
    let [(a, at_a), (b, at_b)] = pair(faults);
    let to_b = a.connect(b.address(), 0, PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    const SIZES: [usize; 5] = [0, 100, 5_000, 32_000, 300_000];
    const ROUNDS: usize = 40;
    scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                let got = b.irecv(None, Match::ANY, vec![0; 300_000]).unwrap();
                let got = wait(&b, got);
                assert_eq!(got.status.result, Ok(()));
                let mut data = got.sink.unwrap();
                data.truncate(got.status.transferred as usize);
                let back = b.isend(got.status.peer.unwrap(), 1, data.into()).unwrap();
                wait(&b, back);
            }
        });
        for round in 0..ROUNDS {
            let message = Bytes::from(vec![round as u8; SIZES[round % SIZES.len()]]);
            let sent = a.issend(to_b, 7, message.clone()).unwrap();
            let got = a.irecv(None, Match::ANY, vec![0; 300_000]).unwrap();
            let got = wait(&a, got);
            assert_eq!(got.sink.unwrap()[..message.len()], message);
            assert_eq!(wait(&a, sent).status.result, Ok(()));
        }
    });
    b.close(PATIENCE).unwrap();
    a.close(PATIENCE).unwrap();
    at_a.of(fault) + at_b.of(fault)
}

const USUAL: [FrameType; 6] = [
    FrameType::Small,
    FrameType::Medium,
    FrameType::Rendezvous,
    FrameType::Pull,
    FrameType::Reply,
    FrameType::Notify,
];

#[test]
fn messages_arrive_despite_faults_of_each_type() {
    for frame_type in FrameType::ALL {
        for fault in Fault::ALL {
            let faults = format!("{}:{}:3", fault.name(), frame_type.name());
            let made = echo(&faults, fault);
            println!("{faults}: {made}");
            assert!(made > 0 || !USUAL.contains(&frame_type), "{faults} was never made");
        }
    }
}

#[test]
fn messages_arrive_despite_faults_of_every_kind_at_once() {
    assert!(echo("drop:11,duplicate:7,delay:5", Fault::Drop) > 0);
}

#[test]
fn first_attempts_to_connect_may_be_lost() {
    let [(a, at_a), (b, _)] = pair("drop:connect:2,delay:connect:1");
    a.connect(b.address(), 0, PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    assert!(at_a.of(Fault::Delay) > 0);
}
