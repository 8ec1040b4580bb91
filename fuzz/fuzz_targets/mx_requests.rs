//! Any requests of two applications, over a wire that loses frames.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/mx/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::fuzz::replay_requests(bytes));
