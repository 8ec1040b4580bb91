//! Bulk frames: what goes over a path of their own, and what happens when that changes.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::{self, EnginePair, address, frame_type, pattern, received, secs};
use base::time::{Duration, Instant};
use bytes::Bytes;
use mx::config::Config;
use mx::endpoint::Endpoint;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::outgoing::BulkPath;
use mx::status::{Event, RequestError};
use mx::wire::{self, BULK_EAGER, BULK_PAYLOAD, Body, FrameType, Header, Pull};

type Log = Rc<RefCell<Vec<(FrameType, usize)>>>;

fn connected() -> (EnginePair, [PeerId; 2], Log) {
    let (mut pair, peers) = EnginePair::connected(Config::default());
    pair.set_bulk_path(BulkPath::Open);
    let log = Log::default();
    let seen = Rc::clone(&log);
    pair.tap = Box::new(move |_, frame| {
        seen.borrow_mut().push((frame_type(frame), frame.len()));
        true
    });
    (pair, peers, log)
}

/// How many frames of this type have left, and the length of the longest.
fn count(log: &Log, frame_type: FrameType) -> (usize, usize) {
    let lengths = log.borrow();
    let lengths = lengths.iter().filter(|(other, _)| *other == frame_type);
    lengths.fold((0, 0), |(count, longest), (_, length)| (count + 1, longest.max(*length)))
}

/// Sends a message of so many bytes from the first end to the second.
fn send(pair: &mut EnginePair, to: PeerId, length: usize) {
    pair.ends[0].isend(pair.now, to, 1, pattern(length), 0).unwrap();
    pair.ends[1].irecv(pair.now, None, Match::ANY, vec![0; length], 0).unwrap();
}

#[test]
fn data_go_in_bulk_frames_while_there_is_a_path() {
    let (mut pair, [peer, _], log) = connected();
    for (length, frame, frames, longest) in [
        (4608, FrameType::Medium, 4, 1500),
        (4609, FrameType::Medium, 1, 24 + 16 + 4609),
        (32 << 10, FrameType::Medium, 1, 24 + 16 + BULK_PAYLOAD),
        (100_000, FrameType::Reply, 4, 24 + 8 + BULK_PAYLOAD),
        (5 << 20, FrameType::Reply, 160, 24 + 8 + BULK_PAYLOAD),
    ] {
        log.borrow_mut().clear();
        send(&mut pair, peer, length);
        pair.run(Duration::ZERO);
        assert_eq!(received(&mut pair), [pattern(length)], "{length}");
        assert_eq!(count(&log, frame), (frames, longest), "{length}");
    }
    assert_eq!((pair.ends[0].counters().resent, pair.ends[1].counters().asked_again), (0, 0));
}

#[test]
fn path_that_is_full_holds_up_data_alone() {
    let (mut pair, [peer, _], log) = connected();
    pair.set_bulk_path(BulkPath::Full);
    // What is asked for waits, and messages that need no path do not wait for it.
    send(&mut pair, peer, 100_000);
    for length in [0, 1000, 20_000] {
        send(&mut pair, peer, length);
    }
    pair.run(Duration::from_micros(500));
    assert_eq!(received(&mut pair), [pattern(0), pattern(1000)]);
    assert!(log.borrow().iter().all(|(_, length)| *length <= 1500));
    pair.set_bulk_path(BulkPath::Open);
    pair.run(Duration::ZERO);
    let mut lengths: Vec<_> = received(&mut pair).iter().map(Vec::len).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [20_000, 100_000]);
}

#[test]
fn late_frame_on_a_path_is_not_sent_again() {
    let (mut pair, [peer, _], log) = connected();
    pair.asleep[1] = true;
    send(&mut pair, peer, 20_000);
    for _ in 0..10 {
        send(&mut pair, peer, 10);
    }
    pair.run(Duration::from_millis(300));
    assert_eq!(count(&log, FrameType::Medium).0, 1);
    pair.asleep[1] = false;
    pair.run(Duration::ZERO);
    assert_eq!(received(&mut pair).len(), 11);
    assert_eq!(count(&log, FrameType::Medium).0, 1);
}

#[test]
fn lost_acknowledgement_of_a_bulk_frame_is_asked_for() {
    let (mut pair, [peer, _], log) = connected();
    let seen = Rc::clone(&log);
    let mut acks = 0;
    pair.tap = Box::new(move |_, frame| {
        seen.borrow_mut().push((frame_type(frame), frame.len()));
        acks += usize::from(frame_type(frame) == FrameType::Ack);
        frame_type(frame) != FrameType::Ack || acks > 1
    });
    send(&mut pair, peer, 20_000);
    pair.run(Duration::from_millis(20));
    assert_eq!((count(&log, FrameType::Medium).0, count(&log, FrameType::Ack).0), (1, 2));
    assert_eq!(pair.ends[0].usage().sends, 0);
}

#[test]
fn what_was_on_a_closed_path_goes_over_the_next_one() {
    for length in [20_000, 3 << 20] {
        let (mut pair, [peer, _], _) = connected();
        let (mtu, open) = (usize::from(pair.ends[0].config().mtu), Rc::new(RefCell::new(false)));
        let is_open = Rc::clone(&open);
        // Of what leaves over the first path a half gets lost with it.
        let mut frames = 0;
        pair.tap = Box::new(move |_, frame| {
            frames += usize::from(frame.len() > mtu);
            frame.len() <= mtu || *is_open.borrow() || frames % 2 == 0
        });
        send(&mut pair, peer, length);
        pair.run(Duration::from_millis(5));
        pair.set_bulk_path(BulkPath::Closed);
        pair.run(Duration::from_millis(5));
        assert_eq!(received(&mut pair).len(), 0);
        *open.borrow_mut() = true;
        pair.set_bulk_path(BulkPath::Open);
        pair.run(secs(1));
        assert_eq!(received(&mut pair), [pattern(length)], "{length}");
    }
}

#[test]
fn peer_to_which_there_is_no_path_any_more_is_lost() {
    let (mut pair, [peer, _], _) = connected();
    pair.tap = Box::new(|_, frame| frame.len() <= 1500);
    send(&mut pair, peer, 20_000);
    pair.run(Duration::from_millis(1));
    pair.set_bulk_path(BulkPath::Closed);
    pair.run(secs(8));
    let lost = |event: &Event<_>| matches!(event, Event::Lost(_, RequestError::Unreachable));
    assert!(pair.take(0).iter().any(lost), "{}", pair.ends[0].dump());
}

#[test]
fn peer_that_connects_again_has_the_path_that_there_is() {
    let (mut pair, [_, peer], log) = connected();
    pair.ends[0].close(pair.now);
    pair.run(secs(2));
    assert!(!pair.ends[1].has_peer(peer));
    let fresh = support::Engine::new(Config::default(), address(0), 99).unwrap();
    pair.ends[0] = fresh;
    pair.ends[0].set_bulk_path(pair.now, address(1), BulkPath::Open);
    let peer = pair.ends[0].connect(pair.now, address(1), 0, secs(1)).unwrap();
    send(&mut pair, peer, 20_000);
    pair.run(secs(0));
    assert_eq!(received(&mut pair), [pattern(20_000)]);
    assert_eq!(count(&log, FrameType::Medium).0, 1);
}

#[test]
fn request_for_frames_of_a_strange_length_is_dropped() {
    for payload in [0, 1, 1000, 65_535] {
        let (mut pair, [peer, _], log) = connected();
        let seen = Rc::clone(&log);
        pair.tap = Box::new(move |_, frame| {
            seen.borrow_mut().push((frame_type(frame), frame.len()));
            if frame_type(frame) == FrameType::Pull {
                support::rewrite(frame, |_: Header, body| match body {
                    Body::Pull(pull) => Body::Pull(Pull { payload, ..pull }),
                    other => other,
                });
            }
            true
        });
        send(&mut pair, peer, 100_000);
        pair.run(Duration::from_millis(50));
        assert_eq!(count(&log, FrameType::Reply), (0, 0), "{payload}");
    }
    assert_eq!(wire::BULK_FRAME, 24 + 16 + 4 + BULK_EAGER);
}

/// Two that are connected, with a path between them, and send messages in parts.
fn in_parts(config: Config) -> (EnginePair<Vec<Bytes>>, PeerId) {
    let mut pair = EnginePair::of_any(config);
    pair.set_bulk_path(BulkPath::Open);
    let [to, _] = pair.connect();
    (pair, to)
}

#[test]
fn data_that_lie_in_one_place_are_not_copied() {
    const RUN: usize = wire::RUN_FRAMES as usize;
    for (lengths, crc, expected) in [
        (vec![100_000], false, 100_000),
        (vec![100_000], true, 0),
        // A short beginning is copied.
        (vec![10, 99_990], false, 99_990),
        // Only frames that lie in one place are not.
        (vec![100, 99_900], false, 100_000 - BULK_PAYLOAD),
        (vec![40_000, 60_000], false, 100_000 - BULK_PAYLOAD),
        (vec![1000; 100], false, 0),
        // What is left of the last run fits into a frame.
        (vec![RUN * BULK_PAYLOAD + 9], false, RUN * BULK_PAYLOAD),
        (vec![20_000], false, 20_000),
        (vec![8, 19_992], false, 19_992),
        (vec![10_000, 10_000], false, 0),
    ] {
        let (mut pair, to) = in_parts(Config { crc, ..Config::default() });
        let message = pattern(lengths.iter().sum());
        let mut rest = message.clone();
        let parts = lengths.iter().map(|length| rest.split_to(*length)).collect();
        pair.ends[1].irecv(pair.now, None, Match::ANY, vec![0; message.len()], 0).unwrap();
        pair.ends[0].isend(pair.now, to, 1, parts, 0).unwrap();
        pair.run(Duration::ZERO);
        assert_eq!(pair.referred, expected, "{lengths:?}");
        let [Event::Received(_, _, data)] = &pair.take(1)[..] else { panic!("{lengths:?}") };
        assert!(*data == message, "{lengths:?}");
    }
}

#[test]
fn path_to_a_lost_peer_is_to_be_closed() {
    let (mut pair, [peer, _], _) = connected();
    send(&mut pair, peer, 100_000);
    pair.asleep[1] = true;
    pair.run(secs(60));
    let events = pair.take(0);
    assert!(events.iter().any(|event| matches!(event, Event::Lost(..))), "{events:?}");
    assert_eq!(pair.ends[0].poll_lost_path(), Some(address(1)));
    assert_eq!(pair.ends[0].poll_lost_path(), None);
}

/// Receives a run as a port does that has a place for it, in pieces of so many bytes; how many
/// bytes found their place.
fn receive_run(end: &mut Endpoint<Vec<Bytes>, Vec<u8>>, bytes: &[u8], piece: usize) -> usize {
    let (from, now) = (address(0).nic, Instant::from_micros(1));
    let (head, mut data) = bytes.split_first_chunk().unwrap();
    let mut run = wire::Run::new(head, data.len()).unwrap();
    let (mut skip, mut placed) = (0, 0);
    while run.left() > 0 {
        let Some(place) = end.place(from, &run.head(), skip, run.left() - skip) else {
            assert_eq!(skip, 0, "a place that there was is there until the frame has come");
            let (here, rest) = data.split_at(run.next());
            end.handle_frame(now, from, &[&run.head(), here].concat());
            run.advance(run.next());
            data = rest;
            continue;
        };
        let count = piece.min(place.len());
        let (here, rest) = data.split_at(count);
        place[..count].copy_from_slice(here);
        data = rest;
        placed += count;
        skip += count;
        let whole = run.whole(skip);
        if whole > 0 {
            end.handle_placed(now, from, &run.head(), whole);
            skip -= whole;
            run.advance(whole);
        }
    }
    placed
}

#[test]
fn data_are_received_where_they_belong() {
    const LENGTH: usize = 6 * BULK_PAYLOAD + 20_000;
    let now = Instant::from_micros(1);
    for (room, expected) in [
        (LENGTH, LENGTH),
        (LENGTH + 1, LENGTH),
        // What is not wanted has no place, nor has a frame of which a part is.
        (2 * BULK_PAYLOAD + 7, 2 * BULK_PAYLOAD),
    ] {
        for piece in [7777, usize::MAX] {
            let (EnginePair { mut ends, .. }, to) = in_parts(Config::default());
            let message = pattern(LENGTH);
            ends[1].irecv(now, None, Match::ANY, vec![0; room], 0).unwrap();
            ends[0].isend(now, to, 1, vec![message.clone()], 0).unwrap();
            let (mut out, mut placed, mut runs) = (vec![0; wire::BULK_FRAME], 0, Vec::new());
            for from in [0, 1, 0] {
                while let Some(outgoing) = ends[from].transmit(now, &mut out) {
                    let data = ends[from].data();
                    let bytes = [&out[..outgoing.length - data.len()], data].concat();
                    if data.is_empty() {
                        ends[1 - from].handle_frame(now, address(from as u8).nic, &bytes);
                    } else {
                        placed += receive_run(&mut ends[1], &bytes, piece);
                        runs.push(bytes);
                    }
                }
            }
            assert_eq!(placed, expected.min(room), "{room} {piece}");
            let Some(Event::Received(_, status, data)) = ends[1].poll_event() else { panic!() };
            let received = room.min(LENGTH);
            assert_eq!(status.transferred, received as u64);
            assert!(
                data[..received] == message[..received] && data[received..].iter().all(|b| *b == 0)
            );
            // It is over, and a stranger has no place either.
            let head = runs[0].first_chunk().unwrap();
            assert!(ends[1].place(address(0).nic, head, 0, 1).is_none());
        }
    }
}

#[test]
fn strangers_have_no_place() {
    let (mut pair, [peer, _], _) = connected();
    let heads = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&heads);
    pair.tap = Box::new(move |_, frame| {
        let is_reply = frame_type(frame) == FrameType::Reply;
        seen.borrow_mut().extend(frame.first_chunk::<{ wire::RUN_HEAD }>().filter(|_| is_reply));
        !is_reply
    });
    send(&mut pair, peer, 100_000);
    pair.run(Duration::from_millis(1));
    let head = heads.borrow()[0];
    let nic = address(0).nic;
    let end = &mut pair.ends[1];
    assert_eq!(end.place(nic, &head, 100, 200_000).map(|place| place.len()), Some(100_000 - 100));
    assert_eq!(end.place(nic, &head, 0, 1).map(|place| place.len()), Some(1));
    assert!(end.place(address(7).nic, &head, 0, 1).is_none(), "another NIC");
    // Type, flags (a checksum), endpoints, token, the name of the transfer, the frame's number.
    for at in [0, 1, 2, 3, 4, 24, 28] {
        let mut other = head;
        other[at] ^= 1;
        assert!(end.place(nic, &other, 0, 1).is_none(), "byte {at}");
    }
}
