//! `earmark show --check`: devices of a network of our own, held against policies.

use lab::host::Host;
use lab::station::Station;
use lab::tap::Tap;
use netdev::ethtool::{Coalesce, Ethtool, Parameter};
use serde_json::Value;
use sys::netlink::Netlink;

mod common;
use common::{Directory, EARMARK, Ended, earmark, run};

/// A host with a TAP device, `tap`, whose `rx-frames` is 16, and a pair, `one` and `two`.
fn host() -> (Host, Tap) {
    let host = Host::create("a", &[Station::new("a", 1)]).unwrap_or_else(|why| panic!("{why}"));
    let tap = Tap::create(&host, "tap", 1, 1500).unwrap();
    let made = host.enter_net(|| {
        Ethtool::open()?.set_coalesce("tap", &Coalesce::new().with(Parameter::RxFrames, 16))?;
        Netlink::open()?.add_veth("one", "two")?;
        anyhow::Ok(())
    });
    made.unwrap().unwrap();
    (host, tap)
}

/// Checks devices of the host against a policy.
fn check(host: &Host, policy: &str, arguments: &[&str]) -> Ended {
    let directory = Directory::new();
    let policy = directory.write("policy.toml", policy);
    let mut command = earmark(&["show", "--check", &policy]);
    let output = host.output(command.args(arguments)).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

#[test]
fn the_exit_status_says_whether_rules_hold() {
    let (host, _tap) = host();
    for (rules, code, last) in [
        ("rx-frames = 16\nmtu = \">= 1500\"", 0, "2 hold, 0 broken, 0 unknown"),
        ("rx-frames = { max = 8 }\nrx-usecs = 5", 3, "0 hold, 1 broken, 1 unknown"),
        ("rx-frames = 16\nrx-usecs = 5", 4, "1 hold, 0 broken, 1 unknown"),
        ("match = { driver = \"ice\" }\nrx-usecs = 5", 4, "0 hold, 0 broken, 0 unknown"),
    ] {
        let ended = check(&host, &format!("[taps]\n{rules}\n"), &["tap"]);
        assert_eq!(ended.code, code, "{ended:?}");
        assert_eq!(ended.stdout.lines().last(), Some(last), "{ended:?}");
    }
    let none = check(&host, "[taps]\nmatch = { driver = \"ice\" }\nmtu = 1\n", &[]);
    assert_eq!(none.stderr, "no device is of the group taps\n");
}

#[test]
fn a_broken_rule_is_a_line_with_the_command_that_mends_it() {
    let (host, _tap) = host();
    let policy = "[taps]\nmatch = { driver = \"tun\" }\nrx-frames = { max = 8 }\nrx-usecs = 5\n\
                  [pairs]\nmatch = { name = \"[ot]*\", driver = \"veth\" }\nmtu = 9000\n";
    let ended = check(&host, policy, &[]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "one: mtu is 1500, not 9000 [pairs]; ip link set one mtu 9000",
            "tap: rx-frames is 16, not <= 8 [taps]; earmark apply tap rx-frames 8",
            "two: mtu is 1500, not 9000 [pairs]; ip link set two mtu 9000",
            "tap: rx-usecs is unknown, and should be 5us [taps]: driver tun does not report rx-usecs",
            "0 hold, 3 broken, 1 unknown",
        ],
        "{ended:?}"
    );
    // What it says mends it.
    let state = Directory::new();
    for line in &lines[..3] {
        let (_, fix) = line.split_once("; ").unwrap();
        let fix = fix.replace("earmark ", &format!("{EARMARK} "));
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-c", &fix]).env("EARMARK_STATE_DIR", state.path());
        let output = host.output(shell).unwrap();
        assert!(output.status.success(), "{fix}: {output:?}");
    }
    let ended = check(&host, policy, &[]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (4, 2), "{ended:?}");
}

#[test]
fn the_json_has_each_rule_of_each_device() {
    let (host, _tap) = host();
    let policy = "[all]\nrx-frames = { max = 8 }\n[ice]\nmatch = { driver = \"ice\" }\nmtu = 1\n";
    let ended = check(&host, policy, &["--json"]);
    assert_eq!(ended.code, 3, "{ended:?}");
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&json["schema_version"], &json["broken"]), (&2.into(), &1.into()));
    assert_eq!((&json["holds"], &json["unknown"]), (&0.into(), &2.into()));
    assert_eq!(json["empty_groups"], serde_json::json!(["ice"]));
    let tap = &json["devices"].as_array().unwrap()[1];
    let expected = serde_json::json!({
        "name": "tap", "driver": "tun", "groups": ["all"],
        "rules": [{
            "group": "all", "rule": "rx-frames", "allowed": "<= 8", "outcome": "broken",
            "value": 16.0, "found": "16", "why": null, "fix": "earmark apply tap rx-frames 8",
        }],
    });
    assert_eq!(tap, &expected);
}

#[test]
fn a_policy_that_cannot_be_read_has_the_status_of_a_wrong_option() {
    let directory = Directory::new();
    for (text, words) in [
        ("[a]\nrx-usec = 5\n", "no rule is called rx-usec; is rx-usecs meant?"),
        ("[a]\nrx-usecs = \"~5\"\n", "`~5` is not a time such as 20us"),
        ("", "without a rule"),
        ("\u{0}", "line 1"),
    ] {
        let path = directory.write("policy.toml", text);
        let ended = run(&["show", "--check", &path]);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
    let ended = run(&["show", "--check", "no-such"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("low-latency, throughput, time-server"), "{ended:?}");
    assert_eq!(run(&["show", "--check", "/dev/zero"]).code, 2);
}

#[test]
fn the_policies_that_come_with_it_say_something_of_this_machine() {
    for policy in ["low-latency", "throughput", "time-server"] {
        let ended = run(&["show", "lo", "--check", policy]);
        assert!([0, 3, 4].contains(&ended.code), "{ended:?}");
        assert!(ended.stdout.ends_with(" unknown\n"), "{ended:?}");
    }
}
