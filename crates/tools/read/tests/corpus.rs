//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn read_texts() {
    assert!(replay_corpus("read_texts", support::replay) > 20);
}
