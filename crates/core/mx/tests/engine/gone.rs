//! When a peer counts as gone: when what it owes does not come, and not when it is only slow.

use crate::support::{Engine, EnginePair, address, frame_type, pattern, secs};
use base::time::Duration;
use mx::config::Config;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::status::{Event, RequestError};
use mx::wire::FrameType;

const TIMEOUT: Duration = Duration::from_millis(500);

fn config() -> Config {
    Config { peer_timeout: TIMEOUT, ..Config::default() }
}

fn lose_all(pair: &mut EnginePair, end: usize, unwanted: FrameType) {
    pair.tap = Box::new(move |from, frame| from != end || frame_type(frame) != unwanted);
}

/// Whether this end has lost its peer since it was last asked.
fn has_lost(pair: &mut EnginePair, end: usize, reason: RequestError) -> bool {
    pair.take(end).iter().any(|event| matches!(event, Event::Lost(_, lost) if *lost == reason))
}

/// The second end says something every now and then, which the first one acknowledges.
fn chatter(pair: &mut EnginePair, peer: PeerId, span: Duration) {
    let until = pair.now + span;
    while pair.now < until {
        // It may have lost its peer by then.
        let _ = pair.ends[1].isend(pair.now, peer, 1_000, pattern(9), 0);
        pair.run(Duration::from_millis(20));
    }
}

#[test]
fn numbered_frames_that_never_arrive_end_the_connection_in_spite_of_others() {
    for (unwanted, size) in
        [(FrameType::Small, 10), (FrameType::Medium, 10_000), (FrameType::Rendezvous, 100_000)]
    {
        let (mut pair, [to, from]) = EnginePair::connected(config());
        lose_all(&mut pair, 0, unwanted);
        chatter(&mut pair, from, secs(2));
        pair.ends[0].isend(pair.now, to, 1, pattern(size), 0).unwrap();
        chatter(&mut pair, from, Duration::from_millis(480));
        assert!(!has_lost(&mut pair, 0, RequestError::Unreachable), "{unwanted:?}: too early");
        chatter(&mut pair, from, Duration::from_millis(100));
        assert!(has_lost(&mut pair, 0, RequestError::Unreachable), "{unwanted:?}");
        assert_eq!(pair.ends[0].open_requests().0, []);
    }
}

#[test]
fn a_pull_that_is_never_answered_ends_the_connection() {
    // Of one block nothing is under way between two questions.
    for size in [40_000, 400_000] {
        let (mut pair, [to, from]) = EnginePair::connected(config());
        lose_all(&mut pair, 0, FrameType::Reply);
        pair.ends[1].irecv(pair.now, Some(from), Match::exact(1), vec![0; size], 0).unwrap();
        pair.ends[0].isend(pair.now, to, 1, pattern(size), 0).unwrap();
        let until = pair.now + secs(1);
        while pair.now < until {
            let _ = pair.ends[0].isend(pair.now, to, 2, pattern(9), 0);
            pair.run(Duration::from_millis(20));
        }
        assert!(has_lost(&mut pair, 1, RequestError::Unreachable), "{size}");
        assert_eq!(pair.ends[1].open_requests().1, []);
    }
}

#[test]
fn one_who_has_no_room_is_only_slow() {
    let config = Config { unexpected_messages: 2, peer_credit: 1_000, ..config() };
    for size in [10, 10_000, 100_000] {
        let (mut pair, [to, from]) = EnginePair::connected(config);
        for _ in 0..10 {
            pair.ends[0].isend(pair.now, to, 1, pattern(size), 0).unwrap();
        }
        pair.run(secs(30));
        for end in 0..2 {
            assert!(!has_lost(&mut pair, end, RequestError::Unreachable));
        }
        for _ in 0..10 {
            pair.ends[1].irecv(pair.now, Some(from), Match::exact(1), vec![0; size], 0).unwrap();
        }
        pair.run(secs(1));
        let came = |event: &&Event<Vec<u8>>| {
            matches!(event, Event::Received(_, status, data)
                if status.result == Ok(()) && data[..] == pattern(size)[..])
        };
        assert_eq!(pair.take(1).iter().filter(came).count(), 10, "{size}");
    }
}

#[test]
fn one_who_was_suspended_asks_before_it_gives_up() {
    let (mut pair, [to, _]) = EnginePair::connected(config());
    pair.tap = Box::new(|_, _| false);
    pair.ends[0].isend(pair.now, to, 1, pattern(10), 0).unwrap();
    pair.run(Duration::from_millis(1));
    pair.tap = Box::new(|_, _| true);
    pair.asleep[0] = true;
    pair.run(secs(20));
    pair.asleep[0] = false;
    pair.run(secs(1));
    assert_eq!(pair.ends[1].counters().unexpected, 1);
    assert!(!has_lost(&mut pair, 0, RequestError::Unreachable));
}

#[test]
fn connecting_to_a_peer_asks_whether_it_is_there() {
    let (mut pair, [old, _]) = EnginePair::connected(Config::default());
    let again = |pair: &mut EnginePair| {
        let id = pair.ends[0].connect(pair.now, address(1), 0, secs(1)).unwrap();
        pair.run(secs(2));
        id
    };
    assert_eq!(again(&mut pair), old);
    assert!(matches!(pair.take(0)[..], [Event::Connected(id, Ok(()))] if id == old));
    // Its answer may be lost once or twice.
    let mut count = 0;
    pair.tap = Box::new(move |from, _| {
        count += u32::from(from == 1);
        from == 0 || count > 2
    });
    assert_eq!(again(&mut pair), old);
    assert!(matches!(pair.take(0)[..], [Event::Connected(_, Ok(()))]));
    // One who is silent is not there now, and not given up.
    pair.tap = Box::new(|_, _| false);
    assert_eq!(again(&mut pair), old);
    assert!(matches!(pair.take(0)[..], [Event::Connected(_, Err(RequestError::Timeout))]));
    assert!(pair.ends[0].has_peer(old));
    assert_eq!(pair.ends[0].deadline(), None);
    // One who was restarted meanwhile is another one.
    pair.tap = Box::new(|_, _| true);
    pair.ends[1] = Engine::new(Config::default(), address(1), 99).unwrap();
    assert_eq!(again(&mut pair), old);
    let events = pair.take(0);
    let [
        Event::Lost(lost, RequestError::Restarted),
        Event::Connected(id, Err(RequestError::Restarted)),
    ] = events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((lost, id), (old, old));
    let new = again(&mut pair);
    assert_ne!(new, old);
    assert!(matches!(pair.take(0)[..], [Event::Connected(id, Ok(()))] if id == new));
    pair.ends[0].issend(pair.now, new, 1, pattern(10), 0).unwrap();
    pair.ends[1].irecv(pair.now, None, Match::exact(1), vec![0; 10], 0).unwrap();
    pair.run(secs(1));
    assert!(matches!(&pair.take(0)[..], [Event::Sent(_, status)] if status.result == Ok(())));
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
