//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn perf_records() {
    assert!(replay_corpus("perf_records", support::perf::replay) > 15);
}
