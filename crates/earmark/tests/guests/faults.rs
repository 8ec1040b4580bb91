//! Guests that end, spin, sleep or cannot begin, and changes from outside in virtual time: a clear
//! error at once, nothing left, and no clock that goes back.
//!
//! They need a kernel with virtual time: `earmark kernel`.

use std::process::{Command, Stdio};

use lab::kernel::{self, PACKAGED};
use rustix::process::Signal;

use super::{PACKAGED_REFUSAL, packaged_kernel_boots};
use crate::support::{Directory, Ended, Running, Traced, earmark, kill, needs, run, soon, unique};

const BENCH: &[&str] = &["bench", "udp-rr", "--world", "virtual", "--duration", "60"];
const LAB: &[&str] = &["lab", "run", "--time", "virtual", "--on", "a", "ping -i 0.001 b"];
const REAL_LAB: &[&str] = &["lab", "run", "--hosts", "uml", "--on", "a", "ping -i 0.01 b"];

/// Seconds that a run waits for a guest that does not answer: far longer than these tests wait for
/// a run, so that whatever ends is not ended by this.
const FOREVER: (&str, &str) = ("EARMARK_PATIENCE", "100000");

/// The kernels of the guests of a run, and processes that belong to them.
fn kernels(traced: &Traced) -> Vec<u32> {
    let is_kernel = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.windows(10).any(|word| word == b"umid=guest")
    };
    traced.processes().into_iter().filter(is_kernel).collect()
}

/// How many guests run programs: a kernel has a process for each.
fn running(traced: &Traced) -> usize {
    let has_child = |pid: &u32| {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children.is_ok_and(|children| !children.is_empty())
    };
    kernels(traced).iter().filter(|pid| has_child(pid)).count()
}

/// Starts a run and waits until both of its guests are well on their way.
#[track_caller]
fn started(arguments: &[&str]) -> (Traced, Running) {
    let mut traced = Traced::new();
    let (name, seconds) = FOREVER;
    let mut run = Running::start(traced.command(arguments).env(name, seconds));
    if arguments == BENCH {
        soon("two guests run programs", || running(&traced) == 2);
    } else {
        let line = run.line();
        assert!(line.starts_with("PING"), "{line}");
    }
    traced.note();
    (traced, run)
}

/// Runs a lab in virtual time with `variables` set.
fn lab(variables: &[(&str, &str)], options: &[&str]) -> Ended {
    let name = unique("faults");
    let mut command = earmark(&["lab", "run", "--time", "virtual", "--name", &name]);
    let variables = [FOREVER].into_iter().chain(variables.iter().copied());
    command.args(options).envs(variables).stdin(Stdio::null());
    Running::start(&mut command).end()
}

#[test]
fn nothing_is_left_of_a_run_with_guests() {
    needs!("guests");
    for arguments in [BENCH, LAB, REAL_LAB] {
        for (signal, code) in [(Signal::KILL, 137), (Signal::TERM, 143)] {
            let (traced, run) = started(arguments);
            run.signal(signal);
            assert_eq!(run.end().code, code, "{arguments:?} {signal:?}");
            traced.gone(&[]);
        }
    }
}

#[test]
fn ctrl_c_ends_a_run_with_guests() {
    needs!("guests");
    for arguments in [BENCH, LAB] {
        let (traced, run) = started(arguments);
        run.signal_group(Signal::INT);
        assert_eq!(run.end().code, 130, "{arguments:?}");
        traced.gone(&[]);
    }
    // Where time is real, the program has a last word, as with other hosts: ping's is its summary.
    let (traced, run) = started(REAL_LAB);
    run.signal_group(Signal::INT);
    let ended = run.end();
    assert!(ended.code == 130 && ended.stdout.contains("packets transmitted"), "{ended:?}");
    traced.gone(&[]);
}

#[test]
fn a_killed_kernel_is_an_error_at_once() {
    needs!("guests");
    for arguments in [BENCH, LAB, REAL_LAB] {
        for last in [false, true] {
            let (traced, run) = started(arguments);
            let name = if last { "b" } else { "a" };
            let victim = guest_kernel(&traced, name);
            kill(victim);
            run.end().refused(&[name, "kernel", "has ended"]);
            traced.gone(&[]);
        }
    }
}

/// The main process of a guest's kernel: of those in the host, the one that no other has started.
#[track_caller]
fn guest_kernel(traced: &Traced, host: &str) -> u32 {
    let holder = traced.process(&format!("earmark-{host}"));
    let net = |pid| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let inside = net(holder);
    let kernels = kernels(traced);
    let is_main = |pid: &u32| !parent(*pid).is_some_and(|parent| kernels.contains(&parent));
    kernels.iter().copied().find(|pid| net(*pid) == inside && is_main(pid)).unwrap()
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// In virtual time our `adaptive` goes through the same profiles as Linux's own DIM in the guest.
#[test]
fn adaptive_is_what_linux_does() {
    needs!("guests");
    let json = run(&["adaptive", "--json", "--duration", "0.05", "pps-100k"]).json();
    let traffic = &json["traffic"][0];
    assert_eq!(traffic["same_profiles"], true, "{traffic}");
    assert!(traffic["linux"].as_array().unwrap().len() >= 4, "Linux decides: {traffic}");
    // All but the moment that a command of Linux's takes; it is looked every 50 us.
    assert!(traffic["agree_us"].as_u64().unwrap() > 45_000, "{traffic}");
}

#[test]
fn a_program_that_spins_is_given_up() {
    needs!("guests");
    let spin = "while :; do :; done";
    let ended = lab(&[("EARMARK_PATIENCE", "2")], &["--on", "a", spin]);
    ended.refused(&["guest a has been running for 2 s without a word"]);
    let ended = lab(&[("EARMARK_PATIENCE", "0")], &["--on", "a", "true"]);
    ended.refused(&["EARMARK_PATIENCE=0", "seconds, 1 or more"]);
}

#[test]
fn a_program_that_spins_on_the_clock_sees_it_move() {
    needs!("guests", "python3");
    let spin = "import time\nwhile time.monotonic() < 1.02: pass\nprint('there')";
    let ended = lab(&[], &["--on", "a", &format!("python3 -c \"{spin}\"")]);
    assert_eq!(ended.output(), "there\n");
}

#[test]
fn a_guest_that_sleeps_for_long_wakes_up_at_the_right_time() {
    needs!("guests");
    let ended = lab(&[], &["--on", "a", "sleep 7200; echo awake"]);
    assert_eq!(ended.output(), "awake\n");
    assert!(ended.stderr.contains("1 hour of virtual time has passed"), "{ended:?}");
    let ended = lab(&[], &["--on", "a", "sleep 2"]);
    assert_eq!(ended.stderr, "");
}

/// What a kernel of `earmark kernel` says, as a comment of a script that stands for one.
fn marker() -> String {
    format!("# {}\n", String::from_utf8_lossy(kernel::recipe::BUILDER))
}

#[test]
fn kernels_without_virtual_time_are_refused_at_once() {
    needs!("linux.uml");
    let timeless = ["never asked its calendar for the time", "earmark kernel"];
    let directory = Directory::new();
    let script = |name, text: &str| directory.script(name, &format!("{text}\n{}", marker()));
    let other = script("other", &format!("#!/bin/sh\nexec {PACKAGED} \"$@\""));
    let silent = script("silent", "#!/bin/true");
    let locked = directory.write("locked", &format!("#!/bin/true\n{}", marker()));
    for (kernel, words) in [
        (PACKAGED, &["lacks the changes", "earmark kernel", "EARMARK_KERNEL"][..]),
        ("/bin/true", &["lacks the changes"]),
        (&other, if packaged_kernel_boots() { &timeless } else { PACKAGED_REFUSAL }),
        (&silent, &["its kernel has ended", "it said nothing"]),
        (&locked, &["start /", "Permission denied"]),
        ("/no/kernel", &["no such file", "EARMARK_KERNEL"]),
    ] {
        let ended = lab(&[("EARMARK_KERNEL", kernel)], &["--on", "a", "true"]);
        ended.refused(words);
    }
}

#[test]
fn a_capture_on_a_full_disk_is_an_error() {
    needs!("guests");
    let ended = lab(&[], &["--pcap", "/dev/full", "--on", "a", "ping -q -c 3 b"]);
    ended.refused(&["/dev/full", "No space left"]);
}

/// Changes settings as fast as it goes while three guests talk; a guest that learned of something
/// before its own time would panic.
#[test]
fn settings_change_while_guests_talk() {
    needs!("guests");
    let ping = "ping -q -i 0.0005 -c 4000 b >/dev/null";
    for cable in [
        &["--link-latency", "0"][..],
        &["--dma-latency", "5", "--link-loss", "2", "--link-duplicate", "2"],
        &["--link-rate", "100000", "--link-reorder", "5"],
    ] {
        let mut traced = Traced::new();
        let mut arguments = vec!["lab", "run", "--time", "virtual"];
        arguments.extend(["--on", "a", ping, "--on", "c", ping, "--until", "all"]);
        arguments.extend(cable);
        let run = Running::start(&mut traced.command(&arguments));
        soon("three guests run", || running(&traced) == 3);
        traced.note();
        let name = traced.name().to_owned();
        let mut sets = 0;
        for setting in ["delay:75", "disabled", "adaptive", "throttle:125"].iter().cycle() {
            for port in ["a0", "b0", "c0"] {
                let mut set = earmark(&["nic", "--lab", &name, "set", port, "strategy", setting]);
                sets += u32::from(quietly(&mut set));
            }
            if kernels(&traced).is_empty() {
                break;
            }
        }
        assert!(sets > 10, "{sets} sets");
        let ended = run.end();
        let mut show = earmark(&["nic", "--lab", &name, "show"]);
        assert!(!quietly(&mut show), "the lab is over");
        assert!(matches!(ended.code, 0 | 1) && ended.stderr.is_empty(), "{ended:?}");
        traced.gone(&[]);
    }
}

/// Whether a command succeeds.
fn quietly(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap().success()
}
