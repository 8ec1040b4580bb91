//! Any frames, among the questions and answers of hosts that look for each other.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/mx/mx-io/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::discovery::replay(bytes));
