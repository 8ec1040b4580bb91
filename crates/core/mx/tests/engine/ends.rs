//! How messages, connections and endpoints end, and what they leave behind: nothing.

use std::cell::Cell;
use std::rc::Rc;

use crate::support::{Engine, EnginePair, frame_type, pattern, secs};
use base::time::Duration;
use mx::config::Config;
use mx::matching::Match;
use mx::status::{Event, RequestError};
use mx::wire::FrameType;

/// A pair of which the second end does not get to see a certain frame of the first.
fn without(nth: usize, unwanted: FrameType) -> (EnginePair, [mx::ids::PeerId; 2], Rc<Cell<bool>>) {
    let (mut pair, ids) = EnginePair::connected(Config::default());
    let (drops, mut count) = (Rc::new(Cell::new(true)), 0);
    let is_on = drops.clone();
    pair.tap = Box::new(move |from, frame| {
        if from == 1 || frame_type(frame) != unwanted || !is_on.get() {
            return true;
        }
        count += 1;
        count <= nth
    });
    (pair, ids, drops)
}

fn has_received(event: &Event<Vec<u8>>, result: Result<(), RequestError>) -> bool {
    matches!(event, Event::Received(_, status, _) if status.result == result)
}

#[test]
fn message_that_was_discarded_while_it_came_is_not_reported() {
    for size in [10_000, 100_000] {
        let unwanted = if size < 32_768 { FrameType::Medium } else { FrameType::Reply };
        let (mut pair, [to, _], drops) = without(2, unwanted);
        pair.ends[0].isend(pair.now, to, 1, pattern(size), 0).unwrap();
        pair.run(Duration::from_millis(10));
        let found = pair.ends[1].claim(None, Match::exact(1)).unwrap().unwrap();
        assert!(pair.ends[1].discard(pair.now, found.message, vec![0; 5_000]));
        assert!(!pair.ends[1].discard(pair.now, found.message, vec![]));
        assert_eq!(pair.ends[1].open_requests().1, []);
        drops.set(false);
        pair.run(secs(2));
        assert!(pair.take(1).is_empty());
        assert_eq!(pair.ends[0].open_requests().0, []);
        assert_eq!(pair.ends[1].usage().unexpected_bytes, 0);
    }
}

#[test]
fn a_silent_peer_is_lost_in_time() {
    let config = Config { peer_timeout: Duration::from_millis(500), ..Config::default() };
    for (size, synchronous) in [(5, false), (5, true), (10_000, false), (200_000, false)] {
        let (mut pair, [to, from]) = EnginePair::connected(config);
        pair.ends[1].irecv(pair.now, Some(from), Match::exact(1), vec![0; 200_000], 0).unwrap();
        pair.run(secs(100));
        assert!(pair.take(0).is_empty(), "no end owes anything");
        pair.tap = Box::new(|_, _| false);
        let send = if synchronous { Engine::issend } else { Engine::isend };
        send(&mut pair.ends[0], pair.now, to, 1, pattern(size), 0).unwrap();
        pair.run(Duration::from_millis(499));
        assert!(!pair.take(0).iter().any(|event| matches!(event, Event::Lost(..))));
        pair.run(Duration::from_millis(2));
        let lost = |event: &Event<_>| matches!(event, Event::Lost(_, RequestError::Unreachable));
        assert!(pair.take(0).iter().any(lost));
        assert_eq!((pair.ends[0].open_requests().0, pair.ends[0].usage().sends), (vec![], 0));
        pair.run(secs(10));
        assert_eq!(pair.ends[0].deadline(), None);
    }
}

#[test]
fn a_lingering_close_delivers_what_both_have_sent() {
    for size in [0, 100, 10_000, 300_000] {
        let (mut pair, ids) = EnginePair::connected(Config::default());
        let mut count = 0;
        pair.tap = Box::new(move |_, _| {
            count += 1;
            count % 7 != 0
        });
        for (end, id) in ids.into_iter().enumerate() {
            for number in 0..10 {
                pair.ends[end].isend(pair.now, id, number, pattern(size), 0).unwrap();
                let place = vec![0; size];
                pair.ends[end].irecv(pair.now, None, Match::exact(number), place, 0).unwrap();
            }
        }
        // The second one has what it wants, and goes; the first one has more to tell.
        pair.run(secs(1));
        pair.take(0);
        pair.ends[1].irecv(pair.now, None, Match::exact(99), vec![0; size], 0).unwrap();
        pair.ends[0].isend(pair.now, ids[0], 99, pattern(size), 0).unwrap();
        pair.ends[0].irecv(pair.now, None, Match::exact(98), vec![0; size], 0).unwrap();
        pair.ends[0].close(pair.now);
        pair.run(secs(20));
        assert!(pair.ends[0].is_closed());
        let ends = pair.take(1);
        let came = ends.iter().filter(|event| has_received(event, Ok(())));
        assert_eq!(came.count(), 11, "{size}");
        assert!(matches!(ends.last(), Some(Event::Lost(_, RequestError::Closed))));
        assert!(pair.take(0).iter().any(|event| has_received(event, Err(RequestError::Aborted))));
        assert_eq!(pair.ends[0].open_requests(), (vec![], vec![]));
    }
}

#[test]
fn two_that_are_full_and_close_do_not_wait_for_each_other() {
    let config = Config { unexpected_messages: 1, ..Config::default() };
    let (mut pair, ids) = EnginePair::connected(config);
    for (end, id) in ids.into_iter().enumerate() {
        for size in [10, 10_000, 10, 10_000] {
            pair.ends[end].isend(pair.now, id, 1, pattern(size), 0).unwrap();
            pair.run(secs(0));
        }
    }
    pair.ends[0].claim(None, Match::exact(1)).unwrap().unwrap();
    for end in 0..2 {
        pair.ends[end].close(pair.now);
    }
    pair.run(secs(1));
    for end in &pair.ends {
        assert!(end.is_closed());
        assert_eq!((end.usage().unexpected_bytes, end.usage().waiting), (0, 0));
    }
}

#[test]
fn a_message_that_has_begun_to_come_is_received_in_spite_of_a_close() {
    let (mut pair, [to, _], drops) = without(2, FrameType::Medium);
    pair.ends[1].irecv(pair.now, None, Match::exact(1), vec![0; 10_000], 0).unwrap();
    pair.ends[0].isend(pair.now, to, 1, pattern(10_000), 0).unwrap();
    pair.run(Duration::from_micros(100));
    let now = pair.now;
    pair.ends[1].close(now);
    drops.set(false);
    pair.run(secs(1));
    let [Event::Received(_, status, data)] = &pair.take(1)[..1] else { panic!() };
    assert!(status.result == Ok(()) && data[..] == pattern(10_000)[..]);
    assert!(pair.ends[1].is_closed());
}
