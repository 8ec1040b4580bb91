//! `earmark lab`: programs on the two hosts, their input, output and exit status, and their end.

use std::io::Write;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{
    Directory, EARMARK, Ended, Running, Traced, earmark, has_signal, ignoring_signals, lab_run,
    needs, output, unique,
};

#[test]
fn status_and_output_come_through() {
    needs!("lab");
    for (options, code) in [
        (&["--on", "a", "true"][..], 0),
        (&["--on", "a", "exit 7"], 7),
        (&["--on", "a", "kill -TERM $$"], 143),
        (&["--on", "a", "no-such-program"], 127),
        // The first failure counts, and of hosts that are waited for.
        (&["--on", "a", "true", "--on", "a", "exit 3", "--on", "a", "exit 4"], 3),
        (&["--until", "both", "--on", "a", "true", "--on", "b", "exit 5"], 5),
        (&["--until", "b", "--on", "b", "exit 6", "--on", "a", "exec sleep 1000"], 6),
        (&["--on", "b", "exit 8"], 8),
    ] {
        let ended = lab_run(options);
        assert_eq!(ended.code, code, "{options:?}: {ended:?}");
    }
    let ended = lab_run(&["--on", "a", "echo out; echo err >&2"]);
    assert_eq!((ended.output(), ended.stderr.as_str()), ("out\n", "err\n"));
}

#[test]
fn hosts_know_each_other_by_name_and_share_a_switch() {
    needs!("lab", "ping");
    let look = "uname -n; getent ahosts a | cut -d ' ' -f 1 | sort -u; \
                getent ahosts b | cut -d ' ' -f 1 | sort -u";
    let ended = lab_run(&["--until", "both", "--on", "a", look, "--on", "b", "uname -n"]);
    let mut words: Vec<_> = ended.output().split_whitespace().collect();
    words.sort_unstable();
    assert_eq!(words, ["10.9.0.1", "10.9.0.2", "a", "b", "fd09::1", "fd09::2"]);
    // It fails unless three were answered; of a busy host it asks more often.
    let ping = "for to in b c 10.9.0.2 fd09::2; do ping -c 3 -i 0.01 -w 60 $to || exit; done";
    lab_run(&["--on", "a", ping, "--on", "c", "sleep 99"]).says(&[
        " bytes from c ",
        " bytes from b ",
        "from 10.9.0.2:",
        "from fd09::2:",
    ]);
}

#[test]
fn run_has_the_directories_of_the_machine_and_none_of_its_files() {
    needs!("lab");
    let look = "cd /run && find . -mindepth 1 -maxdepth 1 -type d -printf '%f %m\\n' | sort";
    let machine = output(std::process::Command::new("sh").args(["-c", look]));
    assert_eq!(lab_run(&["--on", "a", look]).output(), machine.output());
    let files = lab_run(&["--on", "a", "find /run ! -type d; mkdir /run/earmark-test"]);
    assert_eq!(files.output(), "/run/hosts\n");
    assert!(!std::path::Path::new("/run/earmark-test").exists());
}

#[test]
fn the_other_host_is_asked_to_stop() {
    needs!("lab");
    let directory = Directory::new();
    let ready = directory.file("ready");
    let server =
        format!("trap 'echo stopped; exit 9' TERM; >{ready}; while :; do sleep 0.02; done");
    let client = format!("until [ -e {ready} ]; do sleep 0.02; done");
    let ended = lab_run(&["--on", "b", &server, "--on", "a", &client]);
    assert_eq!(ended.output(), "stopped\n");
}

#[test]
fn the_first_command_and_a_shell_have_the_input() {
    needs!("lab");
    let name = unique("input");
    let mut command = earmark(&["lab", "run", "--name", &name, "--on", "a", "cat", "--on", "a"]);
    let mut run = Running::start(command.arg("cat").stdin(Stdio::piped()));
    writeln!(run.input(), "through").unwrap();
    assert_eq!(run.end().output(), "through\n");

    let mut command = earmark(&["lab", "shell", "--on", "b", "--name", &name]);
    let mut run = Running::start(command.env("SHELL", "/bin/sh").stdin(Stdio::piped()));
    writeln!(run.input(), "uname -n; getent ahostsv4 a >/dev/null || exit 1; exit 4").unwrap();
    let ended = run.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (4, "b\n"), "{ended:?}");
    assert!(ended.stderr.contains("`exit` ends the lab"), "{ended:?}");
}

#[test]
fn messages_of_mx_travel_over_ethernet() {
    needs!("lab");
    let serve = format!("exec {EARMARK} mx perf --port packet:b0 --endpoint 3 --once");
    let ask = format!(
        "{EARMARK} mx info --port packet:a0 && exec {EARMARK} mx perf --port packet:a0 --peer \
         02:00:00:00:00:0b/3 --end 50000 --multiply 50 --iterations 20"
    );
    let ended = lab_run(&["--until", "all", "--on", "b", &serve, "--on", "a", &ask]);
    ended.says(&["waiting at 02:00:00:00:00:0b/3", "nic id: 02:00:00:00:00:0a", "mtu: 1500 bytes"]);
    assert!(ended.stdout.lines().any(|line| line.starts_with("2500 ")), "{ended:?}");
    // Endpoints without a number take the first that is free.
    let serve = format!("{EARMARK} mx perf --port packet:b0");
    let directory = Directory::new();
    let [first, second] = ["first", "second"].map(|name| directory.file(name));
    let script = format!(
        "{serve} >{first} & one=$!; until [ -s {first} ]; do sleep 0.02; done
         {serve} >{second} & two=$!; until [ -s {second} ]; do sleep 0.02; done
         kill -TERM $one $two; wait; cat {first} {second}"
    );
    let ended = lab_run(&["--on", "b", &script]);
    let waiting: Vec<_> =
        ended.output().lines().filter_map(|line| line.split(';').next()).collect();
    let expected = ["1", "2"].map(|number| format!("waiting at 02:00:00:00:00:0b/{number}"));
    assert_eq!(waiting, expected, "{ended:?}");
}

/// Starts `script` on host a, waits for its first line and has `sender` send SIGINT, once or until
/// it ends.
///
/// The shell is bash: dash 0.5.12 loses a signal that comes while it starts a program (`onsig`
/// returns at once while `vforked` is set), and then waits for one that has not had it either.
#[track_caller]
fn with_sigint(script: &str, again: bool, sender: fn(&Running, Signal)) -> Ended {
    let mut traced = Traced::new();
    let script = format!("exec bash -c \"{script}\"");
    let mut run = Running::start(&mut traced.command(&["lab", "run", "--on", "a", &script]));
    run.await_line("ready");
    traced.note();
    sender(&run, Signal::INT);
    while again && !run.has_ended() {
        // Two signals that are pending at once are one.
        std::thread::sleep(std::time::Duration::from_millis(100));
        sender(&run, Signal::INT);
    }
    let ended = run.end();
    traced.gone(&[]);
    ended
}

#[test]
fn sigint_ends_the_lab_when_its_programs_have_ended() {
    needs!("lab", "bash");
    // A terminal signals the whole group, a script one process.
    for sender in [Running::signal_group, Running::signal] {
        for (script, again, code, printed) in [
            // A shell that waits for a program, and the program alone.
            ("echo ready; sleep 1000; true", false, 130, "ready\n"),
            ("echo ready; exec sleep 1000", false, 130, "ready\n"),
            // A program has the last word.
            (
                "trap 'echo bye; exit 5' INT; echo ready; while :; do sleep 0.02; done",
                false,
                5,
                "ready\nbye\n",
            ),
            // A second one ends a program that ignores it.
            ("trap '' INT; echo ready; while :; do sleep 0.02; done", true, 130, "ready\n"),
        ] {
            let ended = with_sigint(script, again, sender);
            assert_eq!((ended.code, ended.stdout.as_str()), (code, printed), "{script}: {ended:?}");
        }
    }
}

#[test]
fn programs_of_a_lab_do_not_get_signals_that_are_ignored() {
    needs!("lab", "guests");
    for hosts in ["namespaces", "uml"] {
        let name = unique("deaf");
        let script = "echo ready; exec cat";
        let options = ["lab", "run", "--hosts", hosts, "--name", &name, "--on", "a", script];
        let mut run = ignoring_signals(&options);
        run.await_line("ready");
        for signal in [Signal::INT, Signal::HUP] {
            assert!(has_signal(&run, "SigIgn", signal), "{signal:?}");
            run.signal(signal);
            run.signal_group(signal);
        }
        writeln!(run.input(), "still here").unwrap();
        let ended = run.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "ready\nstill here\n"), "{ended:?}");
    }
}
