//! What the fuzzer and ordinary tests do with any bytes.
#![allow(dead_code, reason = "bench and guest are shared with the device of virtio")]

#[path = "../../../vhost/tests/support/bench.rs"]
pub(crate) mod bench;
pub(crate) mod bus;
pub(crate) mod device;
#[path = "../../../vhost/tests/support/frontend.rs"]
pub(crate) mod frontend;
pub(crate) mod function;
#[path = "../../../vhost/tests/support/guest.rs"]
pub(crate) mod guest;
#[path = "../../../vhost/tests/support/input.rs"]
pub(crate) mod input;
