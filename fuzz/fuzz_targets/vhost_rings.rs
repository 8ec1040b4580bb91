//! Any guest memory, and a ring anywhere in it.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/hosts/vhost/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::rings::replay(bytes));
