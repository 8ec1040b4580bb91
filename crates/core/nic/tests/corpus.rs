//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use nic::prng::Prng;
use replay::replay_corpus;

/// Each file, and the same with a few bytes changed at random.
fn damaged(play: fn(&[u8])) -> impl Fn(&[u8]) {
    move |bytes| {
        play(bytes);
        let mut random = Prng::new(bytes.len() as u64);
        for _ in 0..20 {
            let mut bytes = bytes.to_vec();
            for _ in 0..=random.below(5) {
                let at = random.below(bytes.len().max(1) as u64) as usize;
                bytes.get_mut(at).into_iter().for_each(|byte| *byte = random.next_u64() as u8);
            }
            play(&bytes);
        }
    }
}

#[test]
fn queue_ops() {
    assert!(replay_corpus("queue_ops", damaged(support::replay)) > 20);
}

#[test]
fn parse_frame() {
    assert!(replay_corpus("parse_frame", damaged(support::frames::replay)) > 20);
}
