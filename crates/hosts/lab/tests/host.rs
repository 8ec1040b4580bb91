//! Hosts: what runs in them, what they show of themselves, and that nothing is left of them.
//!
//! These tests need root, or the rights that `become_capable` gives.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use lab::host::Host;
use lab::station::Station;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{members, namespace, ok, soon, two_hosts};

fn host(name: &str) -> Host {
    ok(Host::create(name, &[Station::new("a", 1), Station::new("b", 2)]))
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn start(host: &Host, command: &mut Command) -> Child {
    ok(host.spawn(command))
}

fn status(host: &Host, script: &str) -> ExitStatus {
    ok(start(host, &mut shell(script)).wait())
}

fn kill(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    ok(kill_process(pid, signal));
}

#[test]
fn spawn__status_and_output_come_through() {
    let host = host("a");
    let fine = ok(host.output(&mut shell("echo out; echo err >&2")));
    assert!(fine.status.success());
    assert_eq!((&fine.stdout[..], &fine.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(status(&host, "exit 7").code(), Some(7));
    for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV, libc::SIGRTMIN()] {
        let status = status(&host, &format!("kill -{signal} $$"));
        assert_eq!(status.signal(), Some(signal));
    }
}

#[test]
fn spawn__missing_program_is_an_error() {
    let error = host("a").spawn(&mut Command::new("no-such-program")).expect_err("there is none");
    let expected = "start no-such-program in host a: No such file or directory";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn spawn__pipes_end_with_the_program() {
    let host = host("a");
    let mut cat = Command::new("cat");
    cat.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut cat = start(&host, &mut cat);
    ok(cat.stdin.take().expect("it is piped").write_all(b"through"));
    let mut text = String::new();
    ok(cat.stdout.take().expect("it is piped").read_to_string(&mut text));
    assert_eq!(text, "through");
    assert!(ok(cat.wait()).success());

    // Output ends when the program closes it, not when it ends.
    let mut quiet = start(&host, shell("exec >&-; exec sleep 1000").stdout(Stdio::piped()));
    ok(quiet.stdout.take().expect("it is piped").read_to_string(&mut text));
    ok(quiet.kill());
    ok(quiet.wait());
}

#[test]
fn spawn__signals_reach_the_program() {
    let host = host("a");
    let script = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.02; done";
    let mut child = start(&host, shell(script).stdout(Stdio::piped()));
    let mut line = String::new();
    ok(BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line));
    kill(child.id(), Signal::TERM);
    assert_eq!(ok(child.wait()).code(), Some(3));
}

#[test]
fn spawn__killing_the_child_kills_the_program() {
    let host = host("a");
    let mut child = start(&host, Command::new("sleep").arg("1000"));
    let pids = namespace(host.pid(), "pid");
    assert_eq!(members(&pids).len(), 2);
    ok(child.kill());
    ok(child.wait());
    soon("only the holder is left", || members(&pids) == [host.pid()]);
}

#[test]
fn spawn__keeps_the_working_directory() {
    let host = host("a");
    let here = ok(std::env::current_dir());
    let output = ok(host.output(&mut Command::new("pwd")));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), here.to_string_lossy());
    let elsewhere = ok(host.output(Command::new("pwd").current_dir("/usr")));
    assert_eq!(elsewhere.stdout, b"/usr\n");
}

#[test]
fn host__has_its_own_names_processes_and_mounts() {
    let host = host("a");
    let look = "uname -n; getent hosts 10.9.0.2 a; \
                mount -t tmpfs inner /mnt; touch /run/inner; ls /run; echo $$";
    let output = ok(host.output(&mut shell(look)));
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words[..5], ["a", "10.9.0.2", "b", "fd09::1", "a"], "{text}");
    assert!(words.contains(&"hosts") && words.contains(&"inner"), "{text}");
    assert_eq!(words.last(), Some(&"2"), "the shell is the second process of the host");
    assert!(!ok(fs::read_to_string("/proc/self/mounts")).contains("inner"));
    assert!(!fs::exists("/run/inner").unwrap_or(true));
    assert_ne!(ok(fs::read_to_string("/proc/sys/kernel/hostname")).trim(), "a");
}

#[test]
fn holder__is_named_and_holds_nothing_open() {
    let host = host("a");
    let comm = ok(fs::read_to_string(format!("/proc/{}/comm", host.pid())));
    assert_eq!(comm, "earmark-a\n");
    let open = ok(fs::read_dir(format!("/proc/{}/fd", host.pid()))).count();
    assert_eq!(open, 1, "the life-line and nothing else");
}

#[test]
fn host__orphans_are_reaped() {
    let host = host("a");
    assert!(status(&host, "(sleep 0.05 &)").success());
    let pids = namespace(host.pid(), "pid");
    soon("the orphan is gone", || members(&pids) == [host.pid()]);
    let output = ok(host.output(&mut shell("cat /proc/[0-9]*/stat")));
    assert!(!String::from_utf8_lossy(&output.stdout).contains(") Z "), "a zombie is left");
}

#[test]
fn host__bad_names_are_refused() {
    for name in ["", "a b", "a/b", "-a", "fifteen-letters"] {
        let error = Host::create(name, &[]).expect_err("the name is bad");
        assert!(error.to_string().contains("not a host name"), "{error}");
    }
}

#[test]
fn drop__ends_everything_in_the_host() {
    let host = host("a");
    let mut child = start(&host, &mut shell("setsid sleep 1000 & sleep 1000"));
    let (net, pids) = (namespace(host.pid(), "net"), namespace(host.pid(), "pid"));
    assert!(host.is_alive());
    drop(host);
    // The status of a program outlives its host.
    assert_eq!(ok(child.wait()).signal(), Some(libc::SIGKILL));
    soon("the host is empty", || members(&net).is_empty() && members(&pids).is_empty());
}

#[test]
fn holder_killed__programs_die_and_the_host_says_so() {
    let host = host("a");
    let mut child = start(&host, Command::new("sleep").arg("1000"));
    let net = namespace(host.pid(), "net");
    kill(host.pid(), Signal::KILL);
    assert_eq!(ok(child.wait()).signal(), Some(libc::SIGKILL));
    soon("the host is not alive", || !host.is_alive());
    soon("the network is empty", || members(&net).is_empty());
    let error = host.enter_net(|| ()).expect_err("there is no network");
    assert!(error.to_string().starts_with("enter the network of host a: No such process"));
    assert!(host.spawn(&mut Command::new("true")).is_err());
}

#[test]
fn owner_killed__nothing_is_left() {
    let script = "setsid sleep 1000 & sleep 1000 & echo ready; wait";
    let mut owner = ok(Command::new(two_hosts())
        .args(["sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn());
    let mut ready = String::new();
    ok(BufReader::new(owner.stdout.take().expect("it is piped")).read_line(&mut ready));
    let mut messages = BufReader::new(owner.stderr.take().expect("it is piped")).lines();
    if ready.is_empty() {
        ok(owner.wait());
        panic!("{}", messages.map_while(Result::ok).collect::<Vec<_>>().join("\n"));
    }
    // "host a: pid 123 (Root)"
    let holders: Vec<u32> = messages
        .by_ref()
        .take(2)
        .map(|line| ok(ok(line).split(' ').nth(3).expect("a process id").parse()))
        .collect();
    let namespaces: Vec<String> = holders
        .iter()
        .flat_map(|pid| ["net", "mnt", "uts", "ipc"].map(|kind| namespace(*pid, kind)))
        .collect();
    let pids = namespace(holders[0], "pid");
    assert_eq!(members(&pids).len(), 4, "the holder, the shell and two sleeps");

    ok(owner.kill());
    ok(owner.wait());
    soon("all namespaces are empty", || {
        namespaces.iter().all(|namespace| members(namespace).is_empty())
    });
    // The holder itself goes when the machine's process 1 has reaped the shell, whenever that is.
    soon("all programs are dead", || members(&pids).iter().all(|pid| holders.contains(pid)));
}

#[test]
fn create__from_many_threads_at_once() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let host = host("a");
                    assert_eq!(ok(host.output(&mut shell("echo x"))).stdout, b"x\n");
                }
            });
        }
    });
}
