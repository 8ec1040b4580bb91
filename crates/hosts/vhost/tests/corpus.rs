//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn vhost_device() {
    assert!(replay_corpus("vhost_device", support::device::replay) > 20);
}

#[test]
fn vhost_messages() {
    assert!(replay_corpus("vhost_messages", support::messages::replay) > 20);
}

#[test]
fn vhost_rings() {
    assert!(replay_corpus("vhost_rings", support::rings::replay) > 20);
}
