//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn device_answers() {
    assert!(replay_corpus("device_answers", support::answers::replay) > 20);
}
