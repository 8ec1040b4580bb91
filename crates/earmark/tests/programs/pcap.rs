//! `--pcap`: what tshark reads in a capture.

use std::collections::BTreeMap;
use std::process::Command;

use crate::support::{Directory, lab_run, needs, output};

/// Interface, comment and protocols of each frame.
fn frames(path: &str) -> Vec<[String; 3]> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-r", path, "-T", "fields", "-E", "separator=|"]);
    tshark.args(["-e", "frame.interface_name", "-e", "frame.comment", "-e", "frame.protocols"]);
    let text = output(&mut tshark);
    let fields = |line: &str| {
        let mut fields = line.split('|').map(str::to_owned);
        [(); 3].map(|()| fields.next().unwrap_or_default())
    };
    text.output().lines().map(fields).collect()
}

/// Captures what pings from a to b make, under `setting`.
fn pings(setting: &str, rules: &str) -> Vec<[String; 3]> {
    let directory = Directory::new();
    let path = directory.file("lab.pcapng");
    // One by one: `ping -c 5` would wait for the last answer no longer than for two of the others.
    let ping = "set -e; for i in 1 2 3 4 5; do ping -q -c 1 -W 60 10.9.0.2; done";
    let ended =
        lab_run(&["--strategy", setting, "--mark", rules, "--pcap", &path, "--on", "a", ping]);
    ended.output();
    assert!(ended.stderr.contains(&path), "{ended:?}");
    frames(&path)
}

fn is_ping(frame: &[String; 3]) -> bool {
    frame[2].contains(":icmp:")
}

#[test]
fn each_frame_says_what_the_nic_did() {
    needs!("lab", "tshark", "ping");
    let frames = pings("delay:75", "udp-port=9");
    for port in ["a0", "b0"] {
        let (sent, received): (Vec<_>, Vec<_>) = frames
            .iter()
            .filter(|frame| frame[0] == port && is_ping(frame))
            .partition(|frame| frame[1] == "transmitted");
        assert_eq!((sent.len(), received.len()), (5, 5), "{port}: {frames:?}");
        for [_, comment, _] in &received {
            for words in ["mark=no hold=", "us interrupt=", " reason=", " queue=0"] {
                assert!(comment.contains(words), "no `{words}` in {comment}");
            }
            // A plane that stood still between poll and re-arm finds a timer that has run out.
            assert!(["timer", "rearm"].contains(&reason(comment)), "{comment}");
        }
        // The frame that began a timer waited for all of it, those that met it for less.
        let mut longest = BTreeMap::new();
        for [on, comment, _] in &frames {
            if on == port && reason(comment) == "timer" {
                let of_interrupt = longest.entry(word(comment, "interrupt=")).or_insert(0.0);
                *of_interrupt = hold(comment).max(*of_interrupt);
            }
        }
        assert!(!longest.is_empty(), "{port}: {frames:?}");
        assert!(longest.values().all(|hold| *hold >= 75.0), "{port}: {longest:?}");
    }
}

/// What a comment says after `key`.
fn word<'a>(comment: &'a str, key: &str) -> &'a str {
    comment.split(key).nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default()
}

/// The reason of the interrupt in a comment.
fn reason(comment: &str) -> &str {
    word(comment, "reason=")
}

/// The hold in a comment, in microseconds.
fn hold(comment: &str) -> f64 {
    let number = comment.split("hold=").nth(1).and_then(|rest| rest.split("us").next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no hold in {comment}"))
}
