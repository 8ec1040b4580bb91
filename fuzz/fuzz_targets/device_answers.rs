//! What the kernel says of a device, in any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/linux/netdev/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::answers::replay(bytes));
