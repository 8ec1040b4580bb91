//! Standard output that is not read to its end, as in `earmark bench ... | head`, or is full; and
//! signals that are ignored when a command starts, as by `nohup` or by a script's `&`.

use std::fs::OpenOptions;
use std::io::pipe;

use rustix::process::Signal;

use crate::support::{
    BROKEN_PIPE, Directory, Ended, HeldPort, earmark, has_signal, ignoring_signals,
    into_closed_pipe, soon, unique,
};

#[test]
fn commands_end_quietly_at_a_closed_pipe() {
    for line in [
        "--help",
        "show --help",
        "scenario",
        "scenario e1000",
        "completions bash",
        "man",
        "mx dissector",
        "show lo",
        "watch lo --interval 0.01",
        "mx info --port udp:127.0.0.1",
    ] {
        let ended = into_closed_pipe(&mut earmark(&line.split(' ').collect::<Vec<_>>()));
        assert_eq!((ended.code, ended.stderr.as_str()), (BROKEN_PIPE, ""), "{line}");
    }
    // A failure is one, whether its message is read or not.
    let (_, writer) = pipe().unwrap();
    let status = earmark(&["scenario", "none"]).stderr(writer).status();
    assert_eq!(status.unwrap().code(), Some(1));
}

#[test]
fn a_full_disk_is_reported() {
    for argument in ["scenario", "--help", "--version"] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended: Ended = earmark(&[argument]).stdout(full).output().unwrap().into();
        ended.refused(&["standard output"]);
    }
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
        let run = ignoring_signals(arguments);
        // The last of them to get its handler.
        soon("the command takes signals", || has_signal(&run, "SigCgt", Signal::TERM));
        for signal in [Signal::INT, Signal::HUP] {
            assert!(has_signal(&run, "SigIgn", signal), "{arguments:?}: {signal:?}");
            run.signal(signal);
        }
        run.signal(Signal::TERM);
        let ended = run.end();
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
    }
}
