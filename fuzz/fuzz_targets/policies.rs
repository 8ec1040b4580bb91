//! Policies of any text, held against devices with any settings.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/tools/show/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::policies::replay(bytes));
