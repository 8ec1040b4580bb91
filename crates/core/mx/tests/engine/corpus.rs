//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../../../fuzz/replay.rs"]
mod replay;

use crate::support;
use replay::replay_corpus;

#[test]
fn mx_frames() {
    assert!(replay_corpus("mx_frames", support::fuzz::replay_frames) > 20);
}

#[test]
fn mx_requests() {
    assert!(replay_corpus("mx_requests", support::fuzz::replay_requests) > 20);
}
