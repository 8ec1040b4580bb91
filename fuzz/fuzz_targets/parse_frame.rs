//! Any rules and any frame, through parser, rules and port.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/core/nic/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::frames::replay(bytes));
