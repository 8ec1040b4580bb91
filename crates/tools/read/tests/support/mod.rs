//! What the fuzzer and an ordinary test do with any bytes.

use std::io::Read as _;

use read::archive::members;
use read::packed::plain;
use read::{Input, Options, ReadResult, read, screen};
use report::terminal::Width;

/// Names of inputs that the first byte chooses from: what a name says of the content.
const NAMES: [(&str, bool); 12] = [
    ("-", false),
    ("paste.txt", false),
    ("s/sos_commands/networking/ethtool_-c_eth0", true),
    ("s/sos_commands/networking/ip_-s_-d_link", true),
    ("s/proc/interrupts", true),
    ("scc/network.txt", true),
    ("tuned.conf", false),
    ("10-a.link", false),
    ("a.rules", false),
    ("state/netplan/a.yaml", false),
    ("a.nmconnection", false),
    ("etc/sysctl.d/a.conf", false),
];

/// Reads the bytes as an input of each kind: the first one chooses its name. Whatever is in it, the
/// answer has no more parts than the text has lines, is printed at any width, and is JSON.
pub(crate) fn replay(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let (name, is_of_report) = NAMES[usize::from(*first) % NAMES.len()];
    let input = Input { name: name.into(), bytes: rest.to_vec(), is_of_report, left_off: 0 };
    let options = Options { seconds: Some(1.0), ..Options::default() };
    let findings = read(std::slice::from_ref(&input), &options);
    check(&findings, rest);
    // Twice the same: every counter has two readings.
    check(&read(&[input.clone(), input], &options), &[rest, rest].concat());
    if let Ok(all) = members(rest) {
        read(&all, &options);
    }
    if let Ok(unpacked) = plain(rest) {
        let mut bytes = Vec::new();
        // What is damaged ends in an error; what came before is read.
        let _ = unpacked.take(1 << 16).read_to_end(&mut bytes);
        read(&[Input { name: name.into(), bytes, is_of_report, left_off: 0 }], &options);
    }
}

fn check(findings: &ReadResult, bytes: &[u8]) {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 2;
    assert!(findings.taken.len() <= 2 * lines, "{} of {lines}", findings.taken.len());
    for taken in &findings.taken {
        assert!(taken.not_understood <= taken.lines, "{taken:?}");
    }
    for series in &findings.round_trips {
        let figures = [series.min_us, series.mean_us, series.p50_us, series.max_us];
        assert!(figures.iter().flatten().all(|us| us.is_finite()), "{series:?}");
    }
    for columns in [20, 100] {
        assert!(!screen(findings, Width::columns(columns)).to_string().contains('\u{1b}'));
    }
    serde_json::to_string(findings).unwrap();
}
