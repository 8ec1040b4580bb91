//! `--pcap`: what tshark reads in a capture.

use std::process::Command;

mod common;
use common::{Directory, lab_run, needs, output};

/// Interface, comment and protocols of each frame.
fn frames(path: &str) -> Vec<[String; 3]> {
    needs("tshark", "tshark");
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
    needs("ping", "iputils-ping");
    let directory = Directory::new();
    let path = directory.file("lab.pcapng");
    let ping = "ping -q -c 5 -i 0.01 10.9.0.2";
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
    let frames = pings("delay:75", "udp-port=9");
    for port in ["a0", "b0"] {
        let (sent, received): (Vec<_>, Vec<_>) = frames
            .iter()
            .filter(|frame| frame[0] == port && is_ping(frame))
            .partition(|frame| frame[1] == "transmitted");
        assert_eq!((sent.len(), received.len()), (5, 5), "{port}: {frames:?}");
        for [_, comment, _] in &received {
            for words in ["mark=no hold=", "us interrupt=", " reason=timer queue=0"] {
                assert!(comment.contains(words), "no `{words}` in {comment}");
            }
        }
        // One that met another's timer, or a host that was polling anyway, waited for less.
        let longest = received.iter().map(|[_, comment, _]| hold(comment)).fold(0.0, f64::max);
        assert!(longest >= 75.0, "{port}: {received:?}");
    }
}

/// The hold in a comment, in microseconds.
fn hold(comment: &str) -> f64 {
    let number = comment.split("hold=").nth(1).and_then(|rest| rest.split("us").next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no hold in {comment}"))
}

#[test]
fn a_marked_frame_names_its_mark() {
    let frames = pings("marked:1000", "length<=512");
    let received: Vec<_> =
        frames.iter().filter(|frame| is_ping(frame) && frame[1] != "transmitted").collect();
    assert_eq!(received.len(), 10, "{frames:?}");
    for [_, comment, _] in received {
        assert!(comment.contains("mark=yes") && comment.contains("reason=mark"), "{comment}");
    }
}
