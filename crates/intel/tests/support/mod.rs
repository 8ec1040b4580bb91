//! What the fuzzer and ordinary tests do with any bytes.
#![allow(dead_code, reason = "the guest is shared with the device of virtio")]

pub(crate) mod device;
#[path = "../../../vhost/tests/support/guest.rs"]
pub(crate) mod guest;
#[path = "../../../vhost/tests/support/input.rs"]
pub(crate) mod input;
