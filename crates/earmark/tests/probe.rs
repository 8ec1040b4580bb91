//! `earmark probe`: what it says of hosts of ours.
#![allow(non_snake_case, reason = "test names are subject__case")]

use serde_json::Value;

mod common;
use common::{Directory, EARMARK, Lab, lab_run, once_ready, own_echo, run, udp_echo};

/// Probes host b, whose NIC has this setting, from host a.
fn probed(setting: &str, probe: &str) -> Value {
    let directory = Directory::new();
    let ready = directory.file("ready");
    let echo = own_echo(&ready);
    let probe = once_ready(&ready, &format!("{EARMARK} probe --json {probe}"));
    let mut words = vec!["--ports", "b", "--strategy", setting, "--wait", "precise"];
    words.extend(["--on", "b", &echo, "--on", "a", &probe]);
    lab_run(&words).json()
}

/// A hold of `usecs` on this side is never moved. A machine that is busy may hide it, or whose it
/// is, and that is said; it must not be denied. What a probe makes of the lateness of such a
/// machine beside the hold is for the bench to say, and exact answers are for virtual time.
#[track_caller]
fn neither_moved_nor_denied(seen: &Value, side: &str, usecs: f64) {
    let holds = seen["holds"].as_array().unwrap();
    let sides = |least: f64, most: f64| {
        let found = holds.iter().filter(move |hold| {
            let usecs = hold["usecs"].as_f64().unwrap();
            (least..most).contains(&usecs)
        });
        found.map(|hold| hold["side"].as_str().unwrap())
    };
    let mut alike = sides(0.8 * usecs, 1.25 * usecs);
    assert!(alike.all(|found| [side, "unknown"].contains(&found)), "{seen}");
    let unclear = seen["cannot_tell"].as_array().unwrap();
    let is_found = sides(0.5 * usecs, f64::INFINITY).any(|found| found == side);
    assert!(is_found || !unclear.is_empty(), "{seen}");
}

/// 5 ms stand out on any machine.
#[test]
fn any_echo__round_trips_hold_what_the_nic_holds() {
    for kind in ["udp", "tcp", "icmp"] {
        // Lone probes and pairs only.
        let seen = probed("delay:5000", &format!("b --kind {kind} --count 20"));
        assert_eq!((seen["kind"].as_str(), seen["sent"].as_u64()), (Some(kind), Some(20)));
        assert_ne!(seen["answered"], 0, "{seen}");
        // Other packets, of neighbour discovery or TCP, may have started the timer before a probe.
        assert!(seen["round_trip_us"]["p50"].as_f64() >= Some(2_500.0), "{seen}");
    }
}

#[test]
fn delay_of_theirs__is_a_hold_of_theirs() {
    let seen = probed("delay:1000", "b");
    assert_eq!(seen["kind"], "udp", "our own echo is tried first");
    assert_ne!(seen["answered"], 0, "{seen}");
    assert!(!seen["words"].as_array().unwrap().is_empty(), "{seen}");
    neither_moved_nor_denied(&seen, "theirs", 1_000.0);
}

/// Nothing but round trips, so whose hold it is, packets without an answer have to tell.
#[test]
fn hold_behind_the_far_kernels_echo__is_never_said_to_be_mine() {
    let seen = probed("delay:400", "b --kind icmp");
    assert_eq!(seen["kind"], "icmp");
    for hold in seen["holds"].as_array().unwrap() {
        assert_ne!(hold["side"], "mine", "{seen}");
    }
    assert!(seen["offset_bend_us"].is_null(), "{seen}");
}

/// Round trips do not say whose; my own NIC does, when it holds nothing for a moment.
#[test]
fn varying__tells_whose_hold_it_is_and_leaves_the_nic_as_it_was() {
    for (ports, side) in [("a", "mine"), ("b", "theirs")] {
        let directory = Directory::new();
        let ready = directory.file("ready");
        let echo = own_echo(&ready);
        let options = ["--ports", ports, "--strategy", "delay:1000", "--on", "b", &echo];
        let mut lab = Lab::start(&options);
        let before = settings(&lab);
        let (said, lab_name) = (directory.file("said"), lab.name());
        let probe =
            format!("{EARMARK} probe b --kind tcp --json --vary a0 --lab={lab_name} 2>{said}");
        let (status, text) = lab.ask(&once_ready(&ready, &probe));
        assert_eq!(status, 0, "{text}{}", std::fs::read_to_string(said).unwrap_or_default());
        let seen: Value = serde_json::from_str(&text).unwrap();
        neither_moved_nor_denied(&seen, side, 1_000.0);
        assert_eq!(settings(&lab), before);
        lab.end().output();
    }
}

/// The setting of each port.
fn settings(lab: &Lab) -> Vec<Value> {
    let ports = lab.show();
    ports.as_array().unwrap().iter().map(|port| port["queues"][0]["setting"].clone()).collect()
}

#[test]
fn nobody_there__says_what_was_tried_and_what_to_do() {
    let refused = run(&["probe", "127.0.0.1", "--kind", "tcp", "--port", "9"]);
    refused.refused(&["127.0.0.1", "tcp", "earmark echo"]);
    run(&["probe", "no-such-host.invalid"]).refused(&["no-such-host.invalid"]);
}

#[test]
fn echo_on_one_address_of_two__is_found() {
    // Host b has an address of IPv6, too, which comes first.
    let directory = Directory::new();
    let ready = directory.file("ready");
    let probe = once_ready(&ready, &format!("{EARMARK} probe b --kind udp --count 200 --json"));
    let ended = lab_run(&["--on", "b", &udp_echo(7007, &ready), "--on", "a", &probe]);
    let seen: Value = ended.json();
    assert_eq!(seen["host"], "10.9.0.2:7007", "{seen}");
}
