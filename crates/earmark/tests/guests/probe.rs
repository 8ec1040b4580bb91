//! `earmark probe` in virtual time, where what it says is held against the truth.

use serde_json::Value;

use crate::support::{EARMARK, lab_run, needs};

/// What host a says of host b, which runs `echo`; `ports` of the NIC are set to `setting`.
#[track_caller]
fn probed(setting: &str, ports: &str, echo: &str) -> Value {
    probed_with("", setting, ports, echo)
}

/// The same with `options` of the probe.
#[track_caller]
fn probed_with(options: &str, setting: &str, ports: &str, echo: &str) -> Value {
    let (echo, probe) =
        (format!("{EARMARK} {echo}"), format!("{EARMARK} probe b --json {options}"));
    let mut words = vec!["--time", "virtual", "--ports", ports, "--strategy", setting];
    words.extend(["--on", "b", &echo, "--on", "a", &probe]);
    let seen = lab_run(&words).json();
    assert_eq!(seen["answered"], seen["sent"], "nothing is ever lost here: {seen}");
    seen
}

/// Side, family and frame limit of each hold, and whether its length is within a microsecond, or a
/// hundredth.
#[track_caller]
fn assert_holds(seen: &Value, expected: &[(&str, &str, f64, Option<u64>)]) {
    let holds = seen["holds"].as_array().unwrap();
    let about = |hold: &Value| {
        let word = |name: &str| hold[name].as_str().unwrap().to_owned();
        (word("side"), word("family"), hold["frames"].as_u64())
    };
    let names = expected
        .iter()
        .map(|(side, family, _, frames)| ((*side).to_owned(), (*family).to_owned(), *frames));
    assert_eq!(holds.iter().map(about).collect::<Vec<_>>(), names.collect::<Vec<_>>(), "{seen}");
    for (hold, (_, _, usecs, _)) in holds.iter().zip(expected) {
        let error = (hold["usecs"].as_f64().unwrap() - usecs).abs();
        assert!(error < f64::max(1.0, 0.01 * usecs), "{usecs}: {seen}");
    }
}

#[test]
fn each_family__is_named_with_its_length() {
    needs!("guests");
    for (setting, family, usecs, frames) in [
        ("delay:75", "delay", 75.0, None),
        ("throttle:125", "throttle", 125.0, None),
        ("periodic:393", "periodic", 393.0, None),
        ("delay:400+frames:12", "delay", 400.0, Some(12)),
        ("quiet:140/272", "quiet", 140.0, None),
    ] {
        let seen = probed(setting, "b", "echo");
        assert_holds(&seen, &[("theirs", family, usecs, frames)]);
        assert_eq!(seen["holds"][0]["lengths"], "both", "{seen}");
    }
}

/// A kernel that polls two times more before its NIC may interrupt; the NIC holds nothing.
#[test]
fn deferral_by_the_kernel__is_named_and_not_a_setting_of_the_nic() {
    needs!("guests");
    let defer = "for device in /sys/class/net/*; do echo 100000 > $device/gro_flush_timeout; \
                 echo 2 > $device/napi_defer_hard_irqs; done; exec";
    let echo = format!("{defer} {EARMARK} echo");
    let probe = format!("{EARMARK} probe b --json");
    let words = ["--time", "virtual", "--strategy", "disabled", "--on", "b", &echo, "--on", "a"];
    let seen = lab_run(&[&words[..], &[&probe]].concat()).json();
    assert_holds(&seen, &[("theirs", "deferral", 100.0, None)]);
    assert_eq!(seen["holds"][0]["polls"], 2, "{seen}");
}

/// Marks end the hold of short packets: no word of short ones alone may deny that of full ones.
#[test]
fn hold_of_full_segments__is_found_behind_marks_for_short_packets() {
    needs!("guests");
    let echo = format!("{EARMARK} echo");
    let probe = format!("{EARMARK} probe b --json");
    let words = ["--time", "virtual", "--ports", "b", "--strategy", "marked:200"];
    let commands = ["--mark", "length<=512", "--on", "b", &echo, "--on", "a", &probe];
    let seen = lab_run(&[&words[..], &commands].concat()).json();
    assert_holds(&seen, &[("theirs", "delay", 200.0, None)]);
    assert_eq!(seen["holds"][0]["lengths"], "full", "{seen}");
    let short = seen["no_holds"].as_array().unwrap().iter().find(|it| it["side"] == "theirs");
    assert_eq!(short.expect("short packets are not held")["lengths"], "short", "{seen}");
}

#[test]
fn holds_of_both_sides__are_distinguished() {
    needs!("guests");
    let seen = probed("delay:300", "both", "echo");
    assert_holds(&seen, &[("theirs", "delay", 300.0, None), ("mine", "delay", 300.0, None)]);
}

#[test]
fn no_hold__is_acquitted_and_a_slow_server_is_named_instead() {
    needs!("guests");
    for (echo, others) in [("echo", 0), ("echo --work-us 40", 1)] {
        let seen = probed("disabled", "b", echo);
        assert_holds(&seen, &[]);
        let others_seen = seen["not_holds"].as_array().unwrap();
        assert_eq!(others_seen.len(), others, "{seen}");
        assert!(others_seen.iter().all(|other| other["what"] == "far program"), "{seen}");
    }
}

/// Every 200 us, each packet is late by the same 120 us: nothing varies.
#[test]
fn probes_further_apart_than_a_hold__are_said_not_to_tell() {
    needs!("guests");
    let seen = probed_with("--rate 5000", "delay:120", "b", "echo");
    assert_holds(&seen, &[]);
    assert!(seen["no_holds"].as_array().unwrap().is_empty(), "{seen}");
    let unclear = &seen["cannot_tell"];
    assert_eq!((&unclear[0]["side"], &unclear[1]["side"]), (&"theirs".into(), &"mine".into()));
    assert_eq!(unclear[0]["why"], serde_json::json!(["probes too far apart"]), "{seen}");
    assert!(unclear[0]["below_usecs"].as_f64() >= Some(120.0), "{seen}");
    let words = seen["words"].as_array().unwrap().iter().filter_map(Value::as_str);
    assert!(words.clone().all(|words| !words.contains("no hold")), "{seen}");
    assert!(words.clone().any(|words| words.contains("--rate")), "{seen}");
}
