//! Requests for the frames of a large message: in another order, and lost.

use crate::support::{EnginePair, address, batch, frame_type, pattern, received};
use base::time::Duration;
use mx::config::Config;
use mx::ids::{PeerId, SendId};
use mx::matching::Match;
use mx::status::Event;
use mx::wire::FrameType;

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

/// The batches of an end, of which pull requests leave in another order, and how many blocks of a
/// message of 5 MiB are asked for again.
fn asked_again(reorder: fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>) -> u64 {
    let (mut pair, [to, _]) = EnginePair::connected(Config::default());
    send(&mut pair, to, 5 << 20);
    for _ in 0..100_000 {
        for from in 0..2 {
            let frames = batch(&mut pair.ends[from], pair.now);
            let (pulls, others): (Vec<_>, Vec<_>) =
                frames.into_iter().partition(|frame| frame_type(frame) == FrameType::Pull);
            for frame in others.iter().chain(&reorder(pulls)) {
                pair.now += Duration::from_nanos(1_200);
                hand_over(&mut pair, 1 - from, std::slice::from_ref(frame));
                pair.ends[1 - from].handle_timeout(pair.now);
            }
        }
        if let Some(Event::Received(_, status, data)) = pair.ends[1].poll_event() {
            assert!(status.result == Ok(()) && data[..] == pattern(5 << 20)[..]);
            return pair.ends[1].counters().asked_again;
        }
    }
    panic!("it does not end");
}

#[test]
fn requests_may_leave_in_another_order() {
    let swapped = |mut pulls: Vec<Vec<u8>>| {
        pulls.chunks_exact_mut(2).for_each(|two| two.swap(0, 1));
        pulls
    };
    let turned = |mut pulls: Vec<Vec<u8>>| {
        pulls.chunks_mut(3).for_each(|three| three.rotate_left(1));
        pulls
    };
    assert_eq!([asked_again(|pulls| pulls), asked_again(swapped), asked_again(turned)], [0; 3]);
}

#[test]
fn lost_request_is_made_again_soon() {
    // With nothing else under way, with one request behind it, and with many.
    for (size, within) in [(40_000, 20_000), (90_000, 400), (300_000, 400)] {
        let (mut pair, [to, from]) = EnginePair::connected(Config::default());
        // The receiver measures the way.
        pair.ends[1].isend(pair.now, from, 1, pattern(10), 0).unwrap();
        pair.run(Duration::from_millis(1));
        let mut is_first = true;
        pair.tap = Box::new(move |_, frame| {
            frame_type(frame) != FrameType::Pull || !std::mem::take(&mut is_first)
        });
        send(&mut pair, to, size);
        pair.run(Duration::from_micros(within));
        assert_eq!(
            (received(&mut pair).len(), pair.ends[1].counters().asked_again),
            (1, 1),
            "{size}"
        );
    }
}
