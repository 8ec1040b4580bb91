//! Recorded answers of netlink, as bytes.

use std::fs;
use std::path::Path;

/// The answers in `tests/samples/DRIVER.replies`, each with the name of its request.
pub(crate) fn all(driver: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../linux/netdev/tests/samples");
    let text = fs::read_to_string(samples.join(format!("{driver}.replies"))).unwrap();
    let lines: Vec<String> =
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    let answer = |line: String| {
        let (request, hex) = line.split_once(' ')?;
        Some((request.to_owned(), bytes(hex)))
    };
    lines.into_iter().filter_map(answer)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks_exact(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap()).collect()
}
