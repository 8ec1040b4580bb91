//! Of frames that leave together to one peer, the last one that a host waits for is marked.

use crate::support::{self, EnginePair, batch, frame_type, pattern, secs};
use mx::config::{Config, Marks};
use mx::endpoint::Endpoint;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::wire::{self, Body, FLAG_MARK, FrameType, Header};

/// A frame of any of these sizes is one of this many, at the usual MTU.
const FRAMES: [(usize, u32); 6] = [(0, 1), (128, 1), (129, 1), (1_500, 2), (5_800, 4), (5_900, 5)];

fn kinds(frames: &[Vec<u8>]) -> Vec<(FrameType, bool)> {
    frames.iter().map(|frame| (frame_type(frame), is_marked(frame))).collect()
}

fn is_marked(frame: &[u8]) -> bool {
    frame[1] & FLAG_MARK != 0
}

/// The batch of the first of two that are connected, which sends messages of these sizes at once.
fn sent(config: Config, sizes: &[usize]) -> Vec<(FrameType, bool)> {
    let (mut pair, [b, _]) = EnginePair::connected(config);
    send(&mut pair, b, sizes);
    kinds(&batch(&mut pair.ends[0], pair.now))
}

fn send(pair: &mut EnginePair, to: PeerId, sizes: &[usize]) {
    for size in sizes {
        pair.ends[0].isend(pair.now, to, 1, pattern(*size), 0).unwrap();
    }
}

fn marked(batch: &[(FrameType, bool)]) -> Vec<usize> {
    (0..batch.len()).filter(|at| batch[*at].1).collect()
}

#[test]
fn the_last_of_a_burst_is_marked() {
    for count in 1..=33 {
        let batch = sent(Config::default(), &vec![128; count]);
        assert_eq!((batch.len(), marked(&batch)), (count, vec![count - 1]));
    }
    // One that waits for 32 others is not kept waiting for more.
    let batch = sent(Config::default(), &[128; 50]);
    assert_eq!(marked(&batch), [32, 49]);
}

#[test]
fn a_burst_ends_with_the_window() {
    let config = Config { window: 8, ..Config::default() };
    assert_eq!(marked(&sent(config, &[128; 20])), [7]);
    // Five frames fit, and the rest of the message does not.
    let batch = sent(config, &[128, 128, 128, 10_000]);
    assert_eq!((batch.len(), marked(&batch)), (8, vec![2]));
    // Two do not fit behind the seventh.
    let batch = sent(config, &[&[128; 7][..], &[1_500]].concat());
    assert_eq!((batch.len(), marked(&batch)), (8, vec![6]));
}

#[test]
fn a_burst_goes_on_with_what_there_is_no_credit_for() {
    let config = Config { peer_credit: 300, ..Config::default() };
    let batch = sent(config, &[128; 4]);
    let types: Vec<_> = batch.iter().map(|(frame_type, _)| *frame_type).collect();
    assert_eq!(types[..2], [FrameType::Small; 2]);
    assert_eq!(types[2..], [FrameType::Rendezvous; 2]);
    assert_eq!(marked(&batch), [3]);
}

#[test]
fn a_short_message_does_not_wait_for_a_long_one() {
    for (size, frames) in FRAMES {
        let batch = sent(Config::default(), &[10, size]);
        let last = frames as usize;
        assert_eq!(batch.len(), 1 + last, "{size}");
        let expected = if frames <= 4 { vec![last] } else { vec![0, last] };
        assert_eq!(marked(&batch), expected, "{size}");
    }
}

/// Peers take turns, so frames to others stand between two to one peer.
#[test]
fn frames_to_others_are_part_of_a_burst() {
    let (mut pair, [b, _]) = EnginePair::connected(Config::default());
    let config = *pair.ends[0].config();
    let mut third = Endpoint::<bytes::Bytes, Vec<u8>>::new(config, support::address(2), 5).unwrap();
    let c = pair.ends[0].connect(pair.now, support::address(2), 0, secs(1)).unwrap();
    // Three rounds of frames connect them.
    for _ in 0..3 {
        for frame in batch(&mut pair.ends[0], pair.now) {
            third.handle_frame(pair.now, support::address(0).nic, &frame);
        }
        for frame in batch(&mut third, pair.now) {
            pair.ends[0].handle_frame(pair.now, support::address(2).nic, &frame);
        }
    }
    for _ in 0..20 {
        send(&mut pair, b, &[8]);
        send(&mut pair, c, &[8]);
    }
    let frames = batch(&mut pair.ends[0], pair.now);
    for to in [1, 2] {
        let own: Vec<_> = frames.iter().filter(|frame| frame[2] == to).collect();
        let marks: Vec<_> = (0..own.len()).filter(|at| is_marked(own[*at])).collect();
        // Each is two frames behind the one before; the last one of all has none beside it.
        assert_eq!((own.len(), marks), (20, vec![16, 19]), "to {to}");
    }
}

#[test]
fn requests_and_ends_of_transfers_share_the_mark_of_what_follows() {
    let (mut pair, [_, a]) = EnginePair::connected(Config::default());
    for size in [100_000, 8] {
        pair.ends[1].irecv(pair.now, None, Match::exact(1), vec![0; size], 0).unwrap();
    }
    let b = pair.ends[0].peers().next().unwrap();
    send(&mut pair, b, &[100_000]);
    for frame in batch(&mut pair.ends[0], pair.now) {
        pair.ends[1].handle_frame(pair.now, support::address(0).nic, &frame);
    }
    pair.ends[1].isend(pair.now, a, 1, pattern(8), 0).unwrap();
    let requests = batch(&mut pair.ends[1], pair.now);
    let pull = (FrameType::Pull, false);
    assert_eq!(kinds(&requests), [pull, pull, pull, (FrameType::Small, true)]);
}

/// A port takes one frame of three and is full. Meanwhile the peer forbids new messages.
#[test]
fn a_mark_that_was_counted_upon_comes_without_its_frame() {
    for (marks, expected) in
        [(Marks::ALL, true), (Marks::SMALL, true), (Marks::ALL.without(Marks::SMALL), false)]
    {
        let (mut pair, [b, a]) = EnginePair::connected(Config { marks, ..Config::default() });
        send(&mut pair, b, &[8; 3]);
        let mut out = [0; 9216];
        let first = pair.ends[0].transmit(pair.now, &mut out).unwrap();
        assert!(!first.marked, "another follows");
        pair.ends[1].isend(pair.now, a, 1, pattern(8), 0).unwrap();
        let answer = batch(&mut pair.ends[1], pair.now).remove(0);
        let (header, body) = wire::parse(&answer).unwrap();
        let length = wire::write(&Header { full: true, ..header }, &body, &mut out);
        pair.ends[0].handle_frame(pair.now, support::address(1).nic, &out[..length]);
        let rest = batch(&mut pair.ends[0], pair.now);
        assert_eq!(kinds(&rest), [(FrameType::Ack, expected)]);
        // Once is enough.
        assert_eq!(batch(&mut pair.ends[0], pair.now), [[0; 0]; 0]);
        let length = wire::write(&Header { full: false, ..header }, &Body::Ack(&[]), &mut out);
        pair.ends[0].handle_frame(pair.now, support::address(1).nic, &out[..length]);
        let rest = batch(&mut pair.ends[0], pair.now);
        assert_eq!(kinds(&rest), [(FrameType::Small, false), (FrameType::Small, expected)]);
    }
}

#[test]
fn frames_that_come_again_keep_their_marks() {
    let (mut pair, [b, _]) = EnginePair::connected(Config::default());
    send(&mut pair, b, &[8; 5]);
    assert_eq!(marked(&kinds(&batch(&mut pair.ends[0], pair.now))), [4]);
    // After the first timeout the first frame goes out again; after the second all are lost, and as
    // many go out as are acknowledged.
    let mut again = Vec::new();
    for _ in 0..2 {
        pair.now = pair.ends[0].deadline().unwrap();
        pair.ends[0].handle_timeout(pair.now);
        again.extend(batch(&mut pair.ends[0], pair.now));
    }
    pair.ends[1].handle_frame(pair.now, support::address(0).nic, &again[0]);
    pair.ends[1].handle_timeout(pair.now + secs(1));
    for answer in batch(&mut pair.ends[1], pair.now + secs(1)) {
        pair.ends[0].handle_frame(pair.now + secs(1), support::address(1).nic, &answer);
    }
    again.extend(batch(&mut pair.ends[0], pair.now + secs(1)));
    assert!(again.len() > 3, "{} frames came again", again.len());
    assert!(again.iter().all(|frame| is_marked(frame)), "{:?}", kinds(&again));
}
