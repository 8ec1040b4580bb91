//! Nothing is left of a run, however it ends: no process, namespace, socket, interface or file.

use rustix::process::{Pid, Signal, kill_process};

mod common;
use common::{Running, Traced};

const BENCH: [&str; 6] = ["bench", "tcp-rr", "--duration", "5", "--pcap", "bench.pcapng"];

/// Starts a bench and waits until its traffic flows.
#[track_caller]
fn started() -> (Traced, Running) {
    let mut traced = Traced::new();
    let run = Running::start(&mut traced.command(&BENCH));
    traced.client();
    traced.note();
    (traced, run)
}

#[test]
fn normal_end() {
    let mut traced = Traced::new();
    let arguments = ["bench", "tcp-rr", "--duration", "0.5", "--pcap", "bench.pcapng"];
    let run = Running::start(&mut traced.command(&arguments));
    traced.client();
    traced.note();
    run.end().output();
    traced.gone(&["bench.pcapng"]);
}

#[test]
fn signals() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let (traced, run) = started();
        run.signal(signal);
        assert_eq!(run.end().code, code, "{signal:?}");
        traced.gone(&["bench.pcapng"]);
    }
}

#[test]
fn interrupt_from_the_terminal() {
    let (traced, run) = started();
    run.signal_group(Signal::INT);
    assert_eq!(run.end().code, 130);
    traced.gone(&["bench.pcapng"]);
}

#[test]
fn killed() {
    let (traced, run) = started();
    run.signal(Signal::KILL);
    assert_eq!(run.end().code, 137);
    traced.gone(&["bench.pcapng"]);
}

#[test]
fn killed_lab_with_programs_that_hide() {
    let mut traced = Traced::new();
    let hide = "setsid sleep 1000 & trap '' TERM INT HUP; echo ready; sleep 1000";
    let arguments = ["lab", "run", "--on", "a", hide];
    let mut run = Running::start(&mut traced.command(&arguments));
    run.await_line("ready");
    traced.note();
    run.signal(Signal::KILL);
    // Only now: its output is open as long as one of the programs lives.
    traced.gone(&[]);
    assert_eq!(run.end().code, 137);
}

#[test]
fn killed_holder() {
    for host in ["a", "b"] {
        let (traced, run) = started();
        let holder = traced.process(&format!("earmark-{host}"));
        kill_process(Pid::from_raw(holder as i32).unwrap(), Signal::KILL).unwrap();
        run.end().refused(&[&format!("host {host}")]);
        traced.gone(&["bench.pcapng"]);
    }
}
