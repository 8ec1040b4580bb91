//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn queue_ops() {
    assert!(replay_corpus("queue_ops", support::replay) > 20);
}

#[test]
fn parse_frame() {
    assert!(replay_corpus("parse_frame", support::frames::replay) > 20);
}
