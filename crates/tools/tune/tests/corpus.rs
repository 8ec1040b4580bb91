//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn tune_files() {
    assert!(replay_corpus("tune_files", support::files::replay) > 10);
}
