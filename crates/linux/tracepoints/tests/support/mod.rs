//! What fuzzers and ordinary tests do with any bytes: one function for each target.

pub(crate) mod perf;
