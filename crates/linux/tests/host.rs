//! Hosts: what runs in them, what they show of themselves, and that nothing is left of them.
//!
//! These tests need root, or the rights that `become_capable` gives.
#![allow(non_snake_case, reason = "test names are subject__case")]

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;

use linux::host::{Host, HostError};
use linux::station::Station;
use rustix::process::{Pid, Signal, kill_process};

mod common;
use common::{members, namespace, ok, two_hosts, within_two_seconds};

fn host(name: &str) -> Host {
    ok(Host::create(name, &[Station::new("a", 1), Station::new("b", 2)]))
}

fn shell(host: &Host, script: &str) -> Command {
    let mut command = ok(host.command("sh"));
    command.args(["-c", script]);
    command
}

fn kill(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    ok(kill_process(pid, signal));
}

#[test]
fn command__status_and_output_come_through() {
    let host = host("a");
    let fine = ok(shell(&host, "echo out; echo err >&2").output());
    assert!(fine.status.success());
    assert_eq!((&fine.stdout[..], &fine.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(ok(shell(&host, "exit 7").status()).code(), Some(7));
    for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV, libc::SIGRTMIN()] {
        let status = ok(shell(&host, &format!("kill -{signal} $$")).status());
        assert_eq!(status.signal(), Some(signal));
    }
}

#[test]
fn command__missing_program_is_an_error() {
    let error = ok(host("a").command("no-such-program")).spawn().expect_err("it does not exist");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn command__pipes_end_with_the_program() {
    let host = host("a");
    let mut cat = ok(ok(host.command("cat")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn());
    ok(cat.stdin.take().expect("it is piped").write_all(b"through"));
    let mut text = String::new();
    ok(cat.stdout.take().expect("it is piped").read_to_string(&mut text));
    assert_eq!(text, "through");
    assert!(ok(cat.wait()).success());

    // Output ends when the program closes it, not when the relay ends.
    let mut quiet = ok(shell(&host, "exec >&-; exec sleep 1000").stdout(Stdio::piped()).spawn());
    ok(quiet.stdout.take().expect("it is piped").read_to_string(&mut text));
    ok(quiet.kill());
    ok(quiet.wait());
}

#[test]
fn command__signals_reach_the_program() {
    let host = host("a");
    let script = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.02; done";
    let mut child = ok(shell(&host, script).stdout(Stdio::piped()).spawn());
    let mut line = String::new();
    ok(BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line));
    kill(child.id(), Signal::TERM);
    assert_eq!(ok(child.wait()).code(), Some(3));
}

#[test]
fn command__killing_the_child_kills_the_program() {
    let host = host("a");
    let mut child = ok(ok(host.command("sleep")).arg("1000").spawn());
    let pids = namespace(host.pid(), "pid");
    assert_eq!(members(&pids).len(), 2);
    ok(child.kill());
    ok(child.wait());
    within_two_seconds("only the holder is left", || members(&pids) == [host.pid()]);
}

#[test]
fn command__keeps_the_working_directory() {
    let host = host("a");
    let here = ok(std::env::current_dir());
    let output = ok(ok(host.command("pwd")).output());
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), here.to_string_lossy());
    let elsewhere = ok(ok(host.command("pwd")).current_dir("/usr").output());
    assert_eq!(elsewhere.stdout, b"/usr\n");
}

#[test]
fn host__has_its_own_names_processes_and_mounts() {
    let host = host("a");
    let look = "uname -n; getent hosts 10.9.0.2 a; \
                mount -t tmpfs inner /mnt; touch /run/inner; ls /run; echo $$";
    let output = ok(shell(&host, look).output());
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
fn host__orphans_are_reaped() {
    let host = host("a");
    assert!(ok(shell(&host, "(sleep 0.05 &)").status()).success());
    let pids = namespace(host.pid(), "pid");
    within_two_seconds("the orphan is gone", || members(&pids) == [host.pid()]);
    let output = ok(shell(&host, "cat /proc/[0-9]*/stat").output());
    assert!(!String::from_utf8_lossy(&output.stdout).contains(") Z "), "a zombie is left");
}

#[test]
fn host__bad_names_are_refused() {
    for name in ["", "a b", "a/b", "-a", "fifteen-letters"] {
        let error = Host::create(name, &[]).expect_err("the name is bad");
        assert!(matches!(error, HostError::Name(_)), "{error}");
    }
}

#[test]
fn drop__ends_everything_in_the_host() {
    let host = host("a");
    let mut child = ok(shell(&host, "setsid sleep 1000 & sleep 1000").spawn());
    let (net, pids) = (namespace(host.pid(), "net"), namespace(host.pid(), "pid"));
    assert!(host.is_alive());
    drop(host);
    assert!(members(&net).is_empty() && members(&pids).is_empty());
    assert_eq!(ok(child.wait()).signal(), Some(libc::SIGKILL));
}

#[test]
fn holder_killed__programs_die_and_the_host_says_so() {
    let host = host("a");
    let mut child = ok(ok(host.command("sleep")).arg("1000").spawn());
    let net = namespace(host.pid(), "net");
    kill(host.pid(), Signal::KILL);
    assert_eq!(ok(child.wait()).signal(), Some(libc::SIGKILL));
    within_two_seconds("the host is not alive", || !host.is_alive());
    assert!(members(&net).is_empty());
    let error = host.enter_net(|| ()).expect_err("there is no network");
    assert!(error.to_string().starts_with("enter the network of host a: No such process"));
    assert!(ok(host.command("true")).status().is_err());
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
        .flat_map(|pid| ["net", "pid", "mnt", "uts", "ipc"].map(|kind| namespace(*pid, kind)))
        .collect();
    assert_eq!(members(&namespaces[1]).len(), 4, "the holder, the shell and two sleeps");
    let relays = || {
        let children = format!("/proc/{0}/task/{0}/children", owner.id());
        fs::read_to_string(children).unwrap_or_default()
    };
    let relay = relays()
        .split_whitespace()
        .find(|pid| !holders.iter().any(|holder| holder.to_string() == **pid))
        .map(|pid| format!("/proc/{pid}/ns/net"))
        .expect("there is a relay");

    ok(owner.kill());
    ok(owner.wait());
    within_two_seconds("all namespaces are empty", || {
        namespaces.iter().all(|namespace| members(namespace).is_empty())
    });
    within_two_seconds("the relay is gone", || fs::read_link(&relay).is_err());
}

#[test]
fn create__from_many_threads_at_once() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let host = host("a");
                    assert_eq!(ok(shell(&host, "echo x").output()).stdout, b"x\n");
                }
            });
        }
    });
}
