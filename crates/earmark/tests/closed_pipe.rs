//! Standard output that nobody reads to its end, as in `earmark bench ... | head`.

use std::fs::OpenOptions;
use std::io::pipe;
use std::process::{Command, Output, Stdio};

mod common;
use common::{Directory, Traced, earmark, in_network};

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
        &["--help"][..],
        &["show", "--help"],
        &["scenario"],
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
    for argument in ["scenario", "--help", "--version"] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = earmark(&[argument]).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{argument}: {said}");
        assert!(said.contains("standard output") && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn a_change_whose_report_cannot_be_written_stays_and_is_reported_on_standard_error() {
    let state = Directory::new();
    let gro = "cat /sys/class/net/one/gro_flush_timeout /sys/class/net/tap/gro_flush_timeout";
    let tune = "--command 'cat /sys/class/net/one/gro_flush_timeout' --higher-is-better --trials 3";
    let ended = in_network(
        &state,
        &format!(
            "lost() {{ \"$@\" >/dev/full || echo status $? >&2; {gro} >&2; }}
             piped() {{ (\"$@\" || echo status $? >&2) | true; {gro} >&2; }}
             for device in one tap; do lost earmark apply $device gro-flush-timeout 5us; done
             lost earmark rollback
             for device in one tap; do earmark apply --confirm-within 600s $device \
                 gro-flush-timeout 5us >/dev/null; done
             lost earmark confirm; piped earmark rollback
             lost earmark apply --json --confirm-within 600s one gro-flush-timeout 5us
             earmark rollback >/dev/null
             lost earmark tune one {tune} --report /none/page; earmark rollback >/dev/null
             lost earmark persist tap rx-frames gro-flush-timeout --write --root root
             lost earmark apply --dry-run one gro-flush-timeout 5us
             lost earmark tune one {tune} --dry-run"
        ),
    );
    assert_eq!(ended.code, 0, "{ended:?}");
    let mut rest = ended.stderr.as_str();
    for words in [
        "earmark: write to standard output: No space left on device (os error 28); what was done \
         stays as it is. The report:\none: gro-flush-timeout 0ns -> 5000ns\n\
         way back: earmark rollback one   (that is gro-flush-timeout 0)\nstatus 4\n5000\n0\n",
        "way back: earmark rollback tap   (that is gro-flush-timeout 0)\nstatus 4\n5000\n5000\n",
        // All devices, not only the first.
        "one is as it was: gro-flush-timeout 0\n",
        "status 4\n0\n0\n",
        "one: kept; way back: earmark rollback one\n",
        "tap: kept; way back: earmark rollback tap\n",
        "status 4\n5000\n5000\n",
        "earmark: write to standard output: Broken pipe (os error 32)",
        "one is as it was: gro-flush-timeout 0\n",
        "status 4\n0\n0\n",
        "\"confirm_within_s\": 600.0,",
        "status 4\n5000\n0\n",
        "earmark: write /none/page: No such file",
        "in force; way back: earmark rollback one\n",
        "status 4\n",
        "written: root/etc/systemd/network/70-earmark-tap.link\n\
         written: root/etc/udev/rules.d/90-earmark-tap.rules\n",
        "way back: earmark persist tap --root root --remove\nstatus 4\n",
        // Nothing is changed, and nothing is done.
        "earmark: write to standard output; make room where it goes",
        "status 1\n0\n0\n",
        "earmark: write to standard output; make room where it goes",
        "status 1\n0\n0\n",
    ] {
        let (_, after) = rest.split_once(words).unwrap_or_else(|| panic!("no `{words}` in {rest}"));
        rest = after;
    }
    assert_eq!(rest, "");
}
