//! What a far host answers to probes, and recordings of it, in any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/tools/probe/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::answers::replay(bytes));
