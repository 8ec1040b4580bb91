//! How two endpoints become peers, when frames are lost, late or come twice, and when lives end.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::{self, Engine, EnginePair, address, frame_type, pattern, secs};
use base::time::Duration;
use mx::config::Config;
use mx::matching::Match;
use mx::status::{Event, RequestError};
use mx::wire::{Body, Connect, FrameType};

const KEY: u32 = 9;

fn config() -> Config {
    Config { key: KEY, ..Config::default() }
}

/// Sends a message from one end to the other, and says whether it came.
fn talks(pair: &mut EnginePair, from: usize) -> bool {
    let to = address(1 - from as u8);
    let peer = pair.ends[from].connect(pair.now, to, KEY, secs(1)).unwrap();
    pair.run(secs(1));
    pair.take(from);
    let Ok(_) = pair.ends[from].isend(pair.now, peer, 7, pattern(500), 0) else { return false };
    let place = vec![0; 500];
    pair.ends[1 - from].irecv(pair.now, None, Match::exact(7), place, 0).unwrap();
    pair.run(secs(1));
    let came = pair.take(1 - from);
    came.iter().any(|event| {
        matches!(event, Event::Received(_, status, data)
        if status.result == Ok(()) && data[..] == pattern(500)[..])
    })
}

/// One end asks the other, which hears it; whatever it answers is still on its way.
fn only_ask(pair: &mut EnginePair) {
    pair.ends[0].connect(pair.now, address(1), KEY, secs(1)).unwrap();
    let mut out = [0; 1500];
    let outgoing = pair.ends[0].transmit(pair.now, &mut out).unwrap();
    pair.ends[1].handle_frame(pair.now, address(0).nic, &out[..outgoing.length]);
}

#[test]
fn wrong_keys_and_versions_are_reported() {
    let mut pair = EnginePair::new(config());
    pair.ends[0].connect(pair.now, address(1), KEY + 1, secs(1)).unwrap();
    pair.run(secs(2));
    assert!(matches!(pair.take(0)[..], [Event::Connected(_, Err(RequestError::BadKey))]));
    assert_eq!(pair.ends.each_ref().map(|end| end.peers().count()), [0, 0]);

    pair.tap = Box::new(|from, frame| {
        support::rewrite(frame, |_, body| match body {
            Body::Connect(connect) if from == 0 => {
                Body::Connect(Connect { version: connect.version + 1, ..connect })
            }
            other => other,
        });
        true
    });
    let id = pair.ends[0].connect(pair.now, address(1), KEY, secs(1)).unwrap();
    pair.ends[0].isend(pair.now, id, 0, pattern(3), 4).unwrap();
    pair.run(secs(2));
    let events = pair.take(0);
    let [Event::Connected(_, Err(RequestError::BadVersion)), Event::Sent(_, status)] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((status.result, status.context), (Err(RequestError::BadVersion), 4));
    assert!(talks(&mut { EnginePair::new(config()) }, 0));
}

#[test]
fn absent_peer_is_a_timeout() {
    let mut pair = EnginePair::new(config());
    pair.tap = Box::new(|_, _| false);
    pair.ends[0].connect(pair.now, address(1), KEY, secs(1)).unwrap();
    pair.run(Duration::from_millis(900));
    assert!(pair.take(0).is_empty());
    pair.run(Duration::from_millis(101));
    assert!(matches!(pair.take(0)[..], [Event::Connected(_, Err(RequestError::Timeout))]));
    let tries = pair.ends[0].counters().sent[FrameType::Connect.index()];
    assert!((4..20).contains(&tries), "{tries}");
}

#[test]
fn a_replayed_request_breaks_nothing() {
    let mut pair = EnginePair::new(config());
    let kept = Rc::new(RefCell::new(Vec::new()));
    let keep = kept.clone();
    pair.tap = Box::new(move |from, frame| {
        if from == 0 && frame_type(frame) == FrameType::Connect {
            keep.borrow_mut().push(frame.clone());
        }
        true
    });
    assert!(talks(&mut pair, 0));
    let restart =
        |pair: &mut EnginePair| pair.ends[0] = Engine::new(config(), address(0), 123).unwrap();
    for _ in 0..3 {
        let old = kept.borrow()[0].clone();
        pair.ends[1].handle_frame(pair.now, address(0).nic, &old);
        assert!(talks(&mut pair, 0) && talks(&mut pair, 1));
    }
    assert_eq!(pair.ends[1].counters().peers_lost, 0);
    restart(&mut pair);
    assert!(talks(&mut pair, 0));
    // The request of the earlier life, long after it.
    let old = kept.borrow()[0].clone();
    pair.ends[1].handle_frame(pair.now, address(0).nic, &old);
    assert!(talks(&mut pair, 0) && talks(&mut pair, 1));
    pair.run(secs(30));
    assert!(talks(&mut pair, 0) && talks(&mut pair, 1));
    assert_eq!(pair.ends[1].counters().peers_lost, 1);
}

#[test]
fn a_closing_endpoint_takes_no_peers() {
    let mut pair = EnginePair::new(config());
    pair.ends[1].close(pair.now);
    pair.ends[0].connect(pair.now, address(1), KEY, secs(1)).unwrap();
    pair.run(secs(1));
    assert!(matches!(pair.take(0)[..], [Event::Connected(_, Err(RequestError::Busy))]));
}

#[test]
fn what_is_sent_to_one_that_asked_and_died_goes_to_the_next_life_as_a_whole() {
    let mut pair = EnginePair::new(config());
    only_ask(&mut pair);
    let peer = pair.ends[1].peers().next().unwrap();
    pair.ends[1].isend(pair.now, peer, 1, pattern(9_000), 0).unwrap();
    // The next life permits less than the one that asked.
    let less = Config { peer_credit: 9_500, ..config() };
    pair.ends[0] = Engine::new(less, address(0), 99).unwrap();
    assert_eq!(pair.ends[1].connect(pair.now, address(0), KEY, secs(1)), Ok(peer));
    for _ in 0..3 {
        pair.ends[1].isend(pair.now, peer, 1, pattern(9_000), 0).unwrap();
    }
    pair.run(secs(1));
    for _ in 0..4 {
        pair.ends[0].irecv(pair.now, None, Match::exact(1), vec![0; 9_000], 0).unwrap();
        pair.run(secs(1));
    }
    let came = pair.take(0);
    assert_eq!(came.len(), 4, "{came:?}");
    assert!(!pair.take(1).iter().any(|event| matches!(event, Event::Lost(..))));
}

#[test]
fn a_replayed_request_does_not_pass_for_an_answer() {
    let mut pair = EnginePair::new(config());
    pair.ends[0].connect(pair.now, address(1), KEY, secs(1)).unwrap();
    let mut out = [0; 1500];
    let outgoing = pair.ends[0].transmit(pair.now, &mut out).unwrap();
    // The next life is asked, and at the same time the network delivers what the last one asked.
    pair.ends[0] = Engine::new(config(), address(0), 99).unwrap();
    pair.ends[1].connect(pair.now, address(0), KEY, secs(1)).unwrap();
    pair.ends[1].handle_frame(pair.now, address(0).nic, &out[..outgoing.length]);
    assert!(talks(&mut pair, 1) && talks(&mut pair, 0));
    assert_eq!(pair.ends.each_ref().map(|end| end.counters().peers_lost), [0, 0]);
}

#[test]
fn every_second_frame_of_a_handshake_may_be_lost() {
    // Whether one asks or both, whichever frame is the first to be lost, and whether each end
    // counts its own or the way counts all; and whether that is so for requests and their answers,
    // or, where one asks, for every frame.
    for number in 0..16 {
        let [both, shared, all] = [1, 2, 4].map(|bit| number & bit != 0);
        let all = all && !both;
        let phase = number / 8;
        let mut pair = EnginePair::new(config());
        let mut counts = [phase; 2];
        pair.tap = Box::new(move |from, frame| {
            let count = &mut counts[if shared { 0 } else { from }];
            let may_be_lost = all || frame_type(frame) == FrameType::Connect;
            *count += u32::from(may_be_lost);
            !may_be_lost || !count.is_multiple_of(2)
        });
        for end in 0..=usize::from(both) {
            let to = address(1 - end as u8);
            pair.ends[end].connect(pair.now, to, KEY, secs(1)).unwrap();
        }
        pair.run(secs(10));
        for end in 0..=usize::from(both) {
            let events = pair.take(end);
            let case = (both, phase, shared, all);
            assert!(matches!(events[..], [Event::Connected(_, Ok(()))]), "{case:?}: {events:?}");
        }
    }
}
