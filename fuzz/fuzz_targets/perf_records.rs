//! Any bytes, as a tracepoint's layout and the records of a ring.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/linux/tracepoints/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::perf::replay(bytes));
