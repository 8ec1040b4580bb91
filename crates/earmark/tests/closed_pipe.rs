//! Standard output that nobody reads to its end, as in `earmark bench ... | head`.

use std::fs::OpenOptions;
use std::io::pipe;
use std::process::{Command, Output, Stdio};

mod common;
use common::{Traced, earmark};

/// What shells tell of a program that SIGPIPE has ended.
const NOBODY_READS: i32 = 141;

/// The end of a pipe whose reader has gone.
fn closed() -> Stdio {
    let (_, writer) = pipe().unwrap();
    writer.into()
}

#[track_caller]
fn into_closed_pipe(command: &mut Command) -> Output {
    let child = command.stdout(closed()).stderr(Stdio::piped()).spawn().unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn commands_end_quietly() {
    for arguments in [
        &["scenario"][..],
        &["scenario", "e1000"],
        &["completions", "bash"],
        &["man"],
        &["mx", "dissector"],
        &["show", "lo"],
        &["watch", "lo", "--interval", "0.01"],
        &["mx", "info", "--port", "udp:127.0.0.1"],
        &["mx", "stress", "--seconds", "0.1"],
    ] {
        let ended = into_closed_pipe(&mut earmark(arguments));
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*said), (Some(NOBODY_READS), ""), "{arguments:?}");
    }
}

#[test]
fn a_bench_ends_quietly_and_leaves_nothing() {
    let run = Traced::new();
    let bench = |seconds| {
        let arguments = ["bench", "ping", "--duration", seconds, "--warmup", "0"];
        let ended = into_closed_pipe(&mut run.command(&arguments));
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let mut ended = bench("0.1");
    // On a busy machine.
    if ended.1.contains("measure for longer") {
        ended = bench("10");
    }
    assert_eq!(ended, (Some(NOBODY_READS), String::new()));
    run.gone(&[]);
}

#[test]
fn a_failure_that_nobody_reads_is_a_failure() {
    let status = earmark(&["scenario", "none"]).stdout(closed()).stderr(closed()).status();
    assert_eq!(status.unwrap().code(), Some(1));
}

#[test]
fn a_full_disk_is_told() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = earmark(&["scenario"]).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("standard output") && !said.contains("panicked"), "{said}");
}
