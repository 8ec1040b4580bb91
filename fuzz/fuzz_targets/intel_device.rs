//! One of Intel's cards, whose guest does anything to its bus, registers and descriptors.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/hosts/intel/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::device::replay(bytes));
