//! What the fuzzer knows, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn workloads() {
    assert!(replay_corpus("workloads", support::workloads::replay) > 10);
}
