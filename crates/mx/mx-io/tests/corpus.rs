//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn mx_bulk() {
    assert!(replay_corpus("mx_bulk", support::bulk::replay) > 10);
}

#[test]
fn mx_discovery() {
    assert!(replay_corpus("mx_discovery", support::discovery::replay) > 20);
}

#[test]
fn mx_shm() {
    assert!(replay_corpus("mx_shm", support::shm::replay) > 10);
}

#[test]
fn mx_texts() {
    assert!(replay_corpus("mx_texts", support::texts::replay) > 10);
}
