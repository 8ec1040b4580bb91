//! What fuzzers and ordinary tests do with any bytes: one function for each target.
#![allow(dead_code, reason = "each fuzz target uses one of them")]

pub(crate) mod bench;
pub(crate) mod device;
pub(crate) mod frontend;
pub(crate) mod guest;
pub(crate) mod input;
pub(crate) mod messages;
pub(crate) mod rings;
