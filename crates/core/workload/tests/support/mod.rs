//! What the fuzzer and ordinary tests do with any bytes.

#[path = "../../../../hosts/vhost/tests/support/input.rs"]
#[allow(dead_code, reason = "other users of it take other fields")]
pub(crate) mod input;
pub(crate) mod workloads;
