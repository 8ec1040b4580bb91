//! What fuzzers and ordinary tests do with any bytes: one function for each target.
#![allow(dead_code, reason = "each fuzz target uses one of them")]

pub(crate) mod bulk;
pub(crate) mod discovery;
#[path = "../../../../hosts/vhost/tests/support/input.rs"]
pub(crate) mod input;
pub(crate) mod shm;
pub(crate) mod texts;
