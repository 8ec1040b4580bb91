//! Frames of each type that are lost, doubled or late: whatever is asked for is done all the same.

use std::cell::Cell;
use std::rc::Rc;

use crate::support::{Engine, EnginePair, address, frame_type, pattern, secs};
use base::time::Duration;
use mx::config::Config;
use mx::endpoint::Endpoint;
use mx::matching::Match;
use mx::status::Event;
use mx::wire::FrameType;

const SIZES: [usize; 6] = [0, 100, 129, 10_000, 40_000, 200_000];

/// Messages of all kinds in both directions; all arrive, and their requests end.
fn exchange(pair: &mut EnginePair, rounds: usize) {
    let ids = [0, 1].map(|end| {
        let to = address(1 - end as u8);
        pair.ends[end].connect(pair.now, to, 0, secs(4)).unwrap()
    });
    let mut expected = [0; 2];
    for round in 0..rounds {
        for end in 0..2 {
            for (size, synchronous) in SIZES.iter().flat_map(|size| [(size, false), (size, true)]) {
                let send = if synchronous { Endpoint::issend } else { Endpoint::isend };
                let info = round as u64;
                send(&mut pair.ends[end], pair.now, ids[end], info, pattern(*size), 1).unwrap();
                let place = vec![0; *size];
                pair.ends[1 - end].irecv(pair.now, None, Match::exact(info), place, 0).unwrap();
                expected[end] += 1;
            }
        }
        pair.run(Duration::from_micros(300));
    }
    pair.run(secs(20));
    for end in 0..2 {
        let mut count = [0; 2];
        for event in pair.take(end) {
            match event {
                Event::Sent(_, status) if status.result == Ok(()) => count[0] += 1,
                Event::Received(_, status, data) if status.result == Ok(()) => {
                    assert!(data[..] == pattern(data.len())[..]);
                    count[1] += 1;
                }
                Event::Connected(_, Ok(())) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(count, [expected[end], expected[1 - end]]);
        let usage = pair.ends[end].usage();
        assert_eq!((usage.sends, usage.posted, usage.early_bytes, usage.pulling), (0, 0, 0, 0));
        assert_eq!(pair.ends[end].counters().peers_lost, 0);
    }
}

#[test]
fn every_nth_frame_of_a_type_may_be_lost() {
    for unwanted in FrameType::ALL {
        for nth in [2, 3, 7] {
            let mut pair = EnginePair::new(Config::default());
            let mut count = 0;
            pair.tap = Box::new(move |_, frame| {
                count += u32::from(frame_type(frame) == unwanted);
                frame_type(frame) != unwanted || count % nth != 0
            });
            exchange(&mut pair, 3);
        }
    }
}

#[test]
fn packets_may_be_replayed() {
    let mut pair = EnginePair::new(Config::default());
    let kept = Rc::new(std::cell::RefCell::new(Vec::new()));
    let (keep, count) = (kept.clone(), Rc::new(Cell::new(0)));
    pair.tap = Box::new(move |from, frame| {
        keep.borrow_mut().push((from, frame.clone()));
        count.set(count.get() + 1);
        true
    });
    exchange(&mut pair, 2);
    let old: Vec<_> = kept.borrow().clone();
    let before = pair.ends.each_ref().map(|end| end.counters().messages_received);
    for (from, frame) in old.iter().chain(old.iter().rev()) {
        pair.ends[1 - from].handle_frame(pair.now, address(*from as u8).nic, frame);
        if frame.len() % 3 == 0 {
            pair.run(Duration::from_micros(10));
        }
    }
    pair.run(secs(20));
    let after = pair.ends.each_ref().map(|end| end.counters().messages_received);
    assert_eq!(before, after);
    exchange(&mut pair, 2);
}

#[test]
fn numbers_wrap() {
    // Sequence numbers, regions and pulls begin at random: some seeds begin shortly before the end.
    for below in [0, 1, 5, 40, 300] {
        let mut pair = EnginePair::new(Config::default());
        for end in 0..2 {
            pair.ends[end].number_from(u32::MAX - below);
        }
        exchange(&mut pair, 4);
    }
    for below in [0, 3, 100] {
        let mut pair = EnginePair::new(Config { window: 8, ..Config::default() });
        let mut count = 0;
        pair.tap = Box::new(move |_, _| {
            count += 1;
            count % 11 != 0
        });
        for end in 0..2 {
            pair.ends[end].number_from(u32::MAX - below);
        }
        exchange(&mut pair, 4);
    }
}

#[test]
fn credit_may_run_out_and_is_announced_instead() {
    let config = Config { peer_credit: 25_000, ..Config::default() };
    let (mut pair, [to, _]) = EnginePair::connected(config);
    for _ in 0..4 {
        pair.ends[0].isend(pair.now, to, 1, pattern(10_000), 0).unwrap();
        pair.run(secs(1));
    }
    let counters = pair.ends[0].counters();
    assert_eq!((counters.without_credit, counters.sent[FrameType::Rendezvous.index()]), (2, 2));
    assert_eq!(pair.take(0).len(), 2, "announced messages end when they are received");
    assert_eq!(pair.ends[1].usage().unexpected_bytes, 20_000);
    for _ in 0..4 {
        pair.ends[1].irecv(pair.now, None, Match::exact(1), vec![0; 10_000], 0).unwrap();
        pair.run(secs(0));
    }
    assert_eq!((pair.take(0).len(), pair.take(1).len()), (2, 4));
    pair.run(secs(1));
    for _ in 0..2 {
        pair.ends[0].isend(pair.now, to, 1, pattern(10_000), 0).unwrap();
    }
    pair.run(secs(0));
    assert_eq!(pair.ends[0].counters().without_credit, 2, "credit came back");
    let _: &Engine = &pair.ends[0];
}

#[test]
fn a_full_receiver_holds_senders_up() {
    let config = Config { unexpected_messages: 10, ..Config::default() };
    let (mut pair, [to, _]) = EnginePair::connected(config);
    for number in 0..100 {
        pair.ends[0].isend(pair.now, to, number, pattern(8), number).unwrap();
        pair.run(Duration::from_millis(1));
    }
    let waiting = pair.ends[1].usage().waiting;
    assert!((10..=12).contains(&waiting), "{waiting}");
    // Nothing is lost while it lasts, and no request either.
    pair.run(secs(60));
    assert_eq!(pair.ends[0].open_requests().0.len(), 100 - waiting as usize);
    for number in 0..100 {
        pair.ends[1].irecv(pair.now, None, Match::exact(number), vec![0; 8], number).unwrap();
        pair.run(Duration::from_millis(1));
    }
    pair.run(secs(5));
    assert_eq!((pair.take(0).len(), pair.take(1).len()), (100, 100));
}

#[test]
fn being_let_in_again_may_be_lost() {
    let config = Config { unexpected_messages: 1, ..Config::default() };
    let (mut pair, [to, _]) = EnginePair::connected(config);
    for number in 0..3 {
        pair.ends[0].isend(pair.now, to, number, pattern(8), number).unwrap();
        pair.run(Duration::from_millis(1));
    }
    pair.run(Duration::from_millis(1));
    let mut lost = 0;
    pair.tap = Box::new(move |from, _| {
        lost += from;
        from == 0 || lost > 1
    });
    for number in 0..2 {
        pair.ends[1].irecv(pair.now, None, Match::exact(number), vec![0; 8], number).unwrap();
    }
    pair.ends[1].irecv(pair.now, None, Match::exact(2), vec![0; 8], 2).unwrap();
    let before = pair.now;
    while !pair.ends[1].open_requests().1.is_empty() {
        pair.run(Duration::from_millis(1));
        assert!(pair.now.since(before) < Duration::from_millis(100));
    }
}
