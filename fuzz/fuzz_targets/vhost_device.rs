//! A whole device, whose guest does anything to its rings.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/hosts/vhost/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::device::replay(bytes));
