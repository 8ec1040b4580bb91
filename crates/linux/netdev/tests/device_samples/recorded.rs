//! Recorded answers of netlink, as bytes.

use std::fs;
use std::path::Path;

/// The answers to a request in `tests/samples/DRIVER.replies`.
pub(crate) fn answers(driver: &str, request: &str) -> Vec<Vec<u8>> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../linux/netdev/tests/samples");
    let text = fs::read_to_string(samples.join(format!("{driver}.replies"))).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix(request)?.strip_prefix(' '));
    lines.map(bytes).collect()
}

pub(crate) fn answer(driver: &str, request: &str) -> Vec<u8> {
    answers(driver, request).remove(0)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks_exact(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap()).collect()
}
