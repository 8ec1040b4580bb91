//! What a guest says on its console and to its calendar, in any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lab::checks::guest(bytes));
