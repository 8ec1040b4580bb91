//! Requests of peers of an MPI program for its memory, in any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| provider::checks::request(bytes));
