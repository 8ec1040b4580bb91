//! What fuzzers and ordinary tests do with any bytes: one function for each target.

#[path = "../../../../hosts/vhost/tests/support/input.rs"]
#[allow(dead_code, reason = "other crates use the rest")]
pub(crate) mod input;
pub(crate) mod policies;
