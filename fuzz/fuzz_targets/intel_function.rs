//! A virtual function of Intel's, whose guest does anything to its bus, queues and messages.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/hosts/intel/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::function::replay(bytes));
