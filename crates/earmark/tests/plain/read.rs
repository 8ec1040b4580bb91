//! What people paste and send, through the command: its cases are those of the crate `read`.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::support::{Directory, EARMARK, has, output, repository, run};

/// A case of the crate.
fn case(name: &str) -> String {
    repository(&format!("crates/tools/read/tests/cases/{name}")).display().to_string()
}

#[test]
fn a_paste_on_standard_input_is_what_it_is_in_a_file() {
    let paste = File::open(case("terminal.txt")).unwrap();
    let ended = Command::new(EARMARK).args(["read", "-"]).stdin(Stdio::from(paste)).output();
    let printed = String::from_utf8(ended.unwrap().stdout).unwrap();
    has(&printed, &["line 14: ethtool -c: coalescing of enp1s0", "Up to 375 us:", "earmark probe"]);
    let of_file = run(&["read", &case("terminal.txt"), "--json"]).json();
    assert_eq!(of_file["devices"][0]["name"], "enp1s0");
    assert_eq!(of_file["devices"][0]["coalescing"]["parameters"]["rx-usecs"], 3);
    assert_eq!(of_file["round_trips"][0]["min_us"], 204.0);
}

#[test]
fn policies_have_the_exit_status_of_show() {
    let checked = |file: &str, policy: &str| {
        let words = ["read", &case(file), "--driver", "igb", "--check", policy];
        output(Command::new(EARMARK).args(words).stdin(Stdio::null()))
    };
    assert_eq!(checked("terminal.txt", "low-latency").code, 3);
    let unknown = checked("10-net-sysctl.txt", "low-latency");
    assert_eq!(unknown.code, 4);
    has(&unknown.stdout, &["longest-hold is unknown", "not here; grep"]);
}

#[test]
fn a_report_is_the_same_in_a_directory_and_in_archives() {
    let directory = Directory::new();
    let of_directory = run(&["read", &case("sosreport"), "--json"]).json();
    for kind in ["--no-auto-compress", "--gzip", "--bzip2", "--xz", "--zstd"] {
        let path = directory.file("s.tar");
        let words = [kind, "-cf", &path, "-C", &case(""), "sosreport"];
        assert!(Command::new("tar").args(words).status().unwrap().success(), "{kind}");
        let of_archive = run(&["read", &path, "--json"]).json();
        assert_eq!(of_archive["devices"], of_directory["devices"], "{kind}");
    }
    run(&["read", &case("sosreport"), "--device", "ens1f0"]).says(&["all come to CPU 0", "C6 133"]);
}

#[test]
fn what_is_not_recognised_is_answered_with_an_example() {
    run(&["read", &case("unknown.txt")])
        .refused(&["nothing in it is recognised", "ethtool -c eth0 |"]);
    run(&["read", "no-such-file"]).refused(&["read no-such-file"]);
    let directory = Directory::new();
    let capture = directory.file("a.pcap");
    std::fs::write(&capture, [&[0xd4, 0xc3, 0xb2, 0xa1][..], &[0; 20]].concat()).unwrap();
    run(&["read", &capture]).says(&["a capture of packets", "earmark predict"]);
}
