//! What once went wrong between more than two endpoints.

use base::time::Duration;
use bytes::Bytes;
use mx::config::Config;
use mx::matching::Match;
use mx::status::{Event, RequestError};
use sim::network::Wires;
use sim::world::{Occurrence, SimEndpoint, World, address};

fn wires() -> Wires {
    let latency = Duration::from_micros(20);
    Wires { rate_mbit: 10_000, latency, queue: 128, ..Wires::default() }
}

/// Host 0 receives from all others; each sends it large messages.
fn begin(hosts: usize, size: usize, config: Config) -> World {
    let mut world = World::new(wires(), hosts, 1);
    for host in 0..hosts {
        world.start(host, config, host as u64);
    }
    for host in 1..hosts {
        let connect =
            |end: &mut SimEndpoint, now| end.connect(now, address(0), 0, config.peer_timeout);
        let peer = world.with(host, connect).unwrap();
        let message = Bytes::from(vec![1; size]);
        world.with(host, |end, now| end.isend(now, peer, 1, message, 0)).unwrap();
        world.with(0, |end, now| end.irecv(now, None, Match::exact(1), vec![0; size], 0)).unwrap();
    }
    world
}

#[test]
fn one_that_does_not_answer_holds_up_no_other() {
    // A window for all pulls that one pull can fill.
    let config = Config { pull_window: 32, ..Config::default() };
    let mut world = begin(4, 1 << 20, config);
    let silent_from = world.now() + Duration::from_micros(300);
    while world.next(silent_from).is_some() {}
    world.cut(0, 1, true);
    let until = world.now() + Duration::from_millis(100);
    let mut came = 0;
    while let Some(occurrence) = world.next(until) {
        came += u32::from(matches!(occurrence, Occurrence::Event(0, Event::Received(..))));
    }
    assert_eq!(came, 2);
}

#[test]
fn one_that_is_lost_holds_up_no_other() {
    let timeout = Duration::from_millis(20);
    let config = Config { pull_window: 32, peer_timeout: timeout, ..Config::default() };
    for restarted in 1..4 {
        let mut world = begin(4, 1 << 20, config);
        let silent_from = world.now() + Duration::from_micros(300);
        while world.next(silent_from).is_some() {}
        world.start(restarted, config, 77);
        let until = world.now() + Duration::from_millis(1_000);
        let mut ends = Vec::new();
        while let Some(occurrence) = world.next(until) {
            if let Occurrence::Event(0, Event::Received(_, status, _)) = occurrence {
                ends.push(status.result);
            }
        }
        ends.sort_unstable();
        assert_eq!(ends[..2], [Ok(()); 2]);
        assert!(
            matches!(ends[2..], [Err(RequestError::Restarted | RequestError::Unreachable)]),
            "{ends:?}"
        );
    }
}
