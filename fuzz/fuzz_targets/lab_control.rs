//! Requests to the control socket of a lab, and its replies, in any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lab::checks::control(bytes));
