//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn mx_discovery() {
    assert!(replay_corpus("mx_discovery", support::discovery::replay) > 20);
}
