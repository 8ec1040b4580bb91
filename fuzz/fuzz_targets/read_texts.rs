//! Any text in place of what people paste and send.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/tools/read/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::replay(bytes));
