//! Workloads whose peers send anything.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/core/workload/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::workloads::replay(bytes));
