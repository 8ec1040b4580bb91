//! Any conversation of a vhost-user frontend, and what becomes of its rings.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/hosts/vhost/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::messages::replay(bytes));
