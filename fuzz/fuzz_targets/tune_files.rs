//! Journals, files that bring settings back, and settings as text, in any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/tools/tune/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::files::replay(bytes));
