//! What the fuzzer knows, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn intel_device() {
    assert!(replay_corpus("intel_device", support::device::replay) > 10);
}

#[test]
fn intel_function() {
    assert!(replay_corpus("intel_function", support::function::replay) > 10);
}
