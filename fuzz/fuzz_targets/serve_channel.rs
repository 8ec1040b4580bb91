//! What a host says to `earmark serve`, without the code and with it, in any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tune::peer::checks::replay(bytes));
