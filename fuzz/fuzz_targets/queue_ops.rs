//! Any sequence of operations on a queue, held against the reference model.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/core/nic/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::replay(bytes));
