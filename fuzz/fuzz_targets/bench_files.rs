//! Orders and records of agents, shards of sweeps, and scenarios, in any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/tools/worlds/tests/support/mod.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| support::files::replay(bytes));
