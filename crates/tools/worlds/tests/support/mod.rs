//! What fuzzers and ordinary tests do with any bytes: one function for each target.
#![allow(dead_code, reason = "each fuzz target uses one of them")]

pub(crate) mod files;
