//! Any frames, among those of two endpoints that exchange messages.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../crates/core/mx/tests/engine/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::fuzz::replay_frames(bytes));
