//! Files of peers, endpoints as text, and reports of other programs, in any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/mx/mx-io/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::texts::replay(bytes));
