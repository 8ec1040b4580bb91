//! Captures of any bytes, in pieces of any length.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/core/capture/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::replay(bytes));
