//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn bench_files() {
    assert!(replay_corpus("bench_files", support::files::replay) > 10);
}
