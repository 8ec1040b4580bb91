//! Signals that are ignored when a command starts, as by `nohup` or by a script's `&`, stay so.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use rustix::process::Signal;

mod common;
use common::port::HeldPort;
use common::{Directory, EARMARK, Running, needs, soon, unique};

/// The command, started with SIGINT and SIGHUP ignored.
fn deaf(arguments: &[&str]) -> Running {
    needs("env", "coreutils");
    let mut command = Command::new("env");
    command.args(["--default-signal=TERM", "--ignore-signal=INT,HUP", EARMARK]).args(arguments);
    Running::start(command.stdin(Stdio::piped()))
}

/// Whether a set of signals in `/proc/PID/status` has this one.
fn has(run: &Running, set: &str, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
    let set = u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap();
    set & 1 << (signal.as_raw() - 1) != 0
}

#[test]
fn ignored_signals_stay_ignored_and_others_end_the_command() {
    let directory = Directory::new();
    let [a, b] = ["a.sock", "b.sock"].map(|name| directory.file(name));
    let held = [HeldPort::new(), HeldPort::new()];
    let port = held[0].number.to_string();
    let listen = format!("127.0.0.1:{}", held[1].number);
    for (arguments, code) in [
        (&["nic", "serve", &a, &b, "--name", &unique("deaf")][..], 0),
        (&["mx", "perf", "--port", "udp:127.0.0.1", "--endpoint", "3"], 0),
        (&["serve", "--listen", &listen], 143),
        (&["echo", "--listen", "127.0.0.1", "--port", &port], 143),
    ] {
        let run = deaf(arguments);
        // The last of them to get its handler.
        soon("the command takes signals", || has(&run, "SigCgt", Signal::TERM));
        for signal in [Signal::INT, Signal::HUP] {
            assert!(has(&run, "SigIgn", signal), "{arguments:?}: {signal:?}");
            run.signal(signal);
        }
        run.signal(Signal::TERM);
        let ended = run.end();
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
    }
}

#[test]
fn programs_of_a_lab_and_their_guests_do_not_get_what_is_ignored() {
    for hosts in ["namespaces", "uml"] {
        let name = unique("deaf");
        let script = "echo ready; exec cat";
        let mut run = deaf(&["lab", "run", "--hosts", hosts, "--name", &name, "--on", "a", script]);
        run.await_line("ready");
        for signal in [Signal::INT, Signal::HUP] {
            assert!(has(&run, "SigIgn", signal), "{signal:?}");
            run.signal(signal);
            run.signal_group(signal);
        }
        writeln!(run.input(), "still here").unwrap();
        let ended = run.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "ready\nstill here\n"), "{ended:?}");
    }
}
