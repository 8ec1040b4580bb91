//! What the fuzzers know, on every `cargo test` and without a fuzzer.

#[path = "../../../fuzz/replay.rs"]
mod replay;
mod support;

use replay::replay_corpus;

#[test]
fn device_answers() {
    assert!(replay_corpus("device_answers", support::answers::replay) > 20);
}

#[test]
fn mx_discovery() {
    assert!(replay_corpus("mx_discovery", support::discovery::replay) > 20);
}

#[test]
fn perf_records() {
    assert!(replay_corpus("perf_records", support::perf::replay) > 15);
}

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
