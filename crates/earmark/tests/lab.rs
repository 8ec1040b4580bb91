//! `earmark lab`: programs on the two hosts, their input, output and exit status, and their end.

use std::io::Write;
use std::process::Stdio;

use rustix::process::Signal;

mod common;
use common::{Directory, Running, Traced, earmark, lab_run, output, run, unique};

#[test]
fn the_exit_status_comes_through() {
    for (script, code) in [
        ("true", 0),
        ("exit 7", 7),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("no-such-program", 127),
    ] {
        let ended = lab_run(&["--on", "a", script]);
        assert_eq!(ended.code, code, "{script}: {ended:?}");
    }
}

#[test]
fn the_first_failure_is_the_exit_status() {
    let ended = lab_run(&["--on", "a", "true", "--on", "a", "exit 3", "--on", "a", "exit 4"]);
    assert_eq!(ended.code, 3, "{ended:?}");
    let ended = lab_run(&["--until", "both", "--on", "a", "true", "--on", "b", "exit 5"]);
    assert_eq!(ended.code, 5, "{ended:?}");
}

#[test]
fn output_comes_through() {
    let ended = lab_run(&["--on", "a", "echo out; echo err >&2"]);
    assert_eq!(ended.output(), "out\n");
    assert_eq!(ended.stderr, "err\n");
}

#[test]
fn hosts_know_each_other_by_name() {
    let look = "uname -n; getent ahosts a | cut -d ' ' -f 1 | sort -u; \
                getent ahosts b | cut -d ' ' -f 1 | sort -u";
    let ended = lab_run(&["--until", "both", "--on", "a", look, "--on", "b", "uname -n"]);
    let mut words: Vec<_> = ended.output().split_whitespace().collect();
    words.sort_unstable();
    assert_eq!(words, ["10.9.0.1", "10.9.0.2", "a", "b", "fd09::1", "fd09::2"]);
}

#[test]
fn run_has_the_directories_of_the_machine_and_none_of_its_files() {
    let look = "cd /run && find . -mindepth 1 -maxdepth 1 -type d -printf '%f %m\\n' | sort";
    let machine = output(std::process::Command::new("sh").args(["-c", look]));
    assert_eq!(lab_run(&["--on", "a", look]).output(), machine.output());
    let files = lab_run(&["--on", "a", "find /run ! -type d; mkdir /run/earmark-test"]);
    assert_eq!(files.output(), "/run/hosts\n");
    assert!(!std::path::Path::new("/run/earmark-test").exists());
}

#[test]
fn the_other_host_is_asked_to_stop() {
    let directory = Directory::new();
    let ready = directory.file("ready");
    let server =
        format!("trap 'echo stopped; exit 9' TERM; >{ready}; while :; do sleep 0.02; done");
    let client = format!("until [ -e {ready} ]; do sleep 0.02; done");
    let ended = lab_run(&["--on", "b", &server, "--on", "a", &client]);
    assert_eq!(ended.output(), "stopped\n");
}

#[test]
fn three_hosts_share_a_switch() {
    let ended = lab_run(&[
        "--on",
        "a",
        "ping -c 3 -i 0.01 -w 60 c && ping -c 3 -i 0.01 -w 60 b",
        "--on",
        "c",
        "sleep 99",
    ]);
    // It fails unless three were answered; of a busy host it asks more often.
    for host in ["c", "b"] {
        assert!(ended.output().contains(&format!(" bytes from {host} ")), "{ended:?}");
    }
}

#[test]
fn until_names_the_host_that_ends_the_lab() {
    let ended = lab_run(&["--until", "b", "--on", "b", "exit 6", "--on", "a", "exec sleep 1000"]);
    assert_eq!(ended.code, 6, "{ended:?}");
    let ended = lab_run(&["--on", "b", "exit 8"]);
    assert_eq!(ended.code, 8, "b alone is waited for: {ended:?}");
    lab_run(&["--until", "a", "--on", "b", "true"]).refused(&["--until", "--on"]);
}

#[test]
fn the_first_command_has_the_input() {
    let name = unique("input");
    let mut command = earmark(&["lab", "run", "--name", &name, "--on", "a", "cat", "--on", "a"]);
    let mut run = Running::start(command.arg("cat").stdin(Stdio::piped()));
    writeln!(run.input(), "through").unwrap();
    assert_eq!(run.end().output(), "through\n");
}

#[test]
fn unknown_hosts_are_refused() {
    lab_run(&["--on", "7", "true"]).refused(&["no host 7", "hosts are named a, b, c"]);
    lab_run(&["--on", "a"]).refused(&["--on"]);
    run(&["lab", "run"]).refused(&["--on"]);
}

#[test]
fn a_shell_reads_a_script() {
    let name = unique("shell");
    let mut command = earmark(&["lab", "shell", "--on", "b", "--name", &name]);
    let mut run = Running::start(command.env("SHELL", "/bin/sh").stdin(Stdio::piped()));
    writeln!(run.input(), "uname -n; getent ahostsv4 a >/dev/null || exit 1; exit 4").unwrap();
    let ended = run.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (4, "b\n"), "{ended:?}");
    assert!(ended.stderr.contains("`exit` ends the lab"), "{ended:?}");
}

/// Starts `script` on host a, waits for its first line and has `interrupt` interrupt it, once or
/// until it ends.
///
/// The shell is bash: dash 0.5.12 loses a signal that comes while it starts a program (`onsig`
/// returns at once while `vforked` is set), and then waits for one that has not had it either.
#[track_caller]
fn interrupted(script: &str, again: bool, interrupt: fn(&Running, Signal)) -> common::Ended {
    common::needs("bash", "bash");
    let mut traced = Traced::new();
    let script = format!("exec bash -c \"{script}\"");
    let mut run = Running::start(&mut traced.command(&["lab", "run", "--on", "a", &script]));
    run.await_line("ready");
    traced.note();
    interrupt(&run, Signal::INT);
    while again && !run.has_ended() {
        // Two signals that are pending at once are one.
        std::thread::sleep(std::time::Duration::from_millis(100));
        interrupt(&run, Signal::INT);
    }
    let ended = run.end();
    traced.gone(&[]);
    ended
}

/// A terminal signals the whole group, a script one process.
const SENDERS: [fn(&Running, Signal); 2] = [Running::signal_group, Running::signal];

#[test]
fn an_interrupt_ends_the_lab() {
    for sender in SENDERS {
        // A shell that waits for a program, and the program alone.
        for script in ["echo ready; sleep 1000; true", "echo ready; exec sleep 1000"] {
            let ended = interrupted(script, false, sender);
            assert_eq!(ended.code, 130, "{ended:?}");
        }
    }
}

#[test]
fn an_interrupted_program_has_the_last_word() {
    let script = "trap 'echo bye; exit 5' INT; echo ready; while :; do sleep 0.02; done";
    for sender in SENDERS {
        let ended = interrupted(script, false, sender);
        assert_eq!((ended.code, ended.stdout.as_str()), (5, "ready\nbye\n"), "{ended:?}");
    }
}

#[test]
fn a_second_interrupt_ends_a_stubborn_program() {
    let script = "trap '' INT; echo ready; while :; do sleep 0.02; done";
    for sender in SENDERS {
        let ended = interrupted(script, true, sender);
        assert_eq!(ended.code, 130, "{ended:?}");
    }
}
