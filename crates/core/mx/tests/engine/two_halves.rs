//! One endpoint that a program and the kernel of its host drive in turns.

use crate::support::{Engine, EnginePair, address, frame_type, pattern, secs};
use base::time::Duration;
use mx::config::Config;
use mx::ids::{PeerId, SendId};
use mx::matching::Match;
use mx::status::Event;
use mx::wire::FrameType;

const LARGE: usize = 100_000;

/// What leaves an end now, type by type.
fn batch(pair: &mut EnginePair, end: usize) -> Vec<Vec<u8>> {
    let mut out = [0; 1500];
    let mut frames = Vec::new();
    while let Some(outgoing) = pair.ends[end].transmit(pair.now, &mut out) {
        frames.push(out[..outgoing.length].to_vec());
    }
    frames
}

fn hand_over(pair: &mut EnginePair, to: usize, frames: &[Vec<u8>]) {
    for frame in frames {
        pair.ends[to].handle_frame(pair.now, address(1 - to as u8).nic, frame);
    }
}

/// Sends a large message for which there is a receive.
fn send(pair: &mut EnginePair, to: PeerId, size: usize) -> SendId {
    pair.ends[1].irecv(pair.now, None, Match::ANY, vec![0; size], 0).unwrap();
    pair.ends[0].isend(pair.now, to, 1, pattern(size), 0).unwrap()
}

fn kinds(frames: &[Vec<u8>]) -> Vec<FrameType> {
    let mut kinds: Vec<_> = frames.iter().map(|frame| frame_type(frame)).collect();
    kinds.dedup();
    kinds
}

fn received(pair: &mut EnginePair) -> usize {
    let is_whole = |event: &&Event<Vec<u8>>| {
        matches!(event, Event::Received(_, status, data)
            if status.result == Ok(()) && data[..] == pattern(data.len())[..])
    };
    pair.take(1).iter().filter(is_whole).count()
}

#[test]
fn frames_of_large_messages_are_known_to_wait() {
    let (mut pair, [to, _]) = EnginePair::connected(Config::default());
    let moves = |pair: &EnginePair| pair.ends.each_ref().map(Engine::moves_large);
    send(&mut pair, to, 10);
    assert_eq!(moves(&pair), [false, false]);
    pair.run(Duration::ZERO);
    send(&mut pair, to, LARGE);
    let announcement = batch(&mut pair, 0);
    assert_eq!(moves(&pair), [false, false]);
    hand_over(&mut pair, 1, &announcement);
    assert_eq!(moves(&pair), [false, true]);
    let requests = batch(&mut pair, 1);
    assert_eq!((moves(&pair), kinds(&requests)), ([false, false], vec![FrameType::Pull]));
    hand_over(&mut pair, 0, &requests);
    assert_eq!(moves(&pair), [true, false]);
    let replies = batch(&mut pair, 0);
    assert_eq!((moves(&pair), kinds(&replies)), ([false, false], vec![FrameType::Reply]));
}

#[test]
fn requests_wait_for_a_message_that_is_held() {
    let (mut pair, [to, _]) = EnginePair::connected(Config::default());
    let held = send(&mut pair, to, LARGE);
    assert!(pair.ends[0].hold(held));
    send(&mut pair, to, LARGE);
    pair.run(Duration::ZERO);
    // The announcements have gone, and those who asked for the second wait behind the first.
    let sent = |pair: &EnginePair, kind: FrameType| pair.ends[0].counters().sent[kind.index()];
    assert_eq!((sent(&pair, FrameType::Rendezvous), sent(&pair, FrameType::Reply)), (2, 0));
    assert!(!pair.ends[0].moves_large() && pair.ends[0].usage().jobs > 4);
    pair.ends[0].release(held);
    assert!(pair.ends[0].moves_large());
    pair.run(Duration::from_micros(900));
    assert_eq!((received(&mut pair), pair.ends[1].counters().asked_again), (2, 0));
    assert!(!pair.ends[0].hold(held), "it has ended");
    pair.ends[0].release(held);
}

#[test]
fn message_may_be_held_again_and_is_asked_for_again() {
    let (mut pair, [to, _]) = EnginePair::connected(Config::default());
    let held = send(&mut pair, to, LARGE);
    pair.ends[0].hold(held);
    pair.run(Duration::from_millis(20));
    assert!(pair.ends[1].counters().asked_again > 0);
    let before = pair.ends[0].usage().jobs;
    pair.ends[0].release(held);
    pair.ends[0].hold(held);
    pair.run(Duration::from_millis(20));
    // What is asked for again is the same request.
    assert_eq!((received(&mut pair), pair.ends[0].usage().jobs), (0, before));
    pair.ends[0].release(held);
    pair.run(secs(1));
    assert_eq!(received(&mut pair), 1);
}

#[test]
fn peer_that_is_never_answered_is_lost_and_leaves_nothing() {
    let (mut pair, [to, _]) = EnginePair::connected(Config::default());
    let held = send(&mut pair, to, LARGE);
    pair.ends[0].hold(held);
    pair.run(secs(20));
    assert_eq!((pair.ends[0].peers().count(), pair.ends[0].usage().jobs), (0, 0));
    assert!(!pair.ends[0].hold(held));
}
