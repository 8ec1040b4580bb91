//! Processes of this host that share rings of frames with an endpoint, and write anything.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/mx/mx-io/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::shm::replay(bytes));
