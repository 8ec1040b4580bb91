//! Hosts that open connections for bulk frames, or should have none, and send streams of any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/mx/mx-io/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::bulk::replay(bytes));
