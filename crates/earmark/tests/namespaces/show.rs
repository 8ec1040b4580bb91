//! `earmark show`, its `--check`, and `earmark watch`, on devices of networks of our own.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use lab::host::Host;
use lab::station::Station;
use lab::tap::Tap;
use netdev::Root;
use netdev::deferral::{Deferral, write_deferral};
use netdev::ethtool::{Coalesce, Ethtool, Parameter};
use serde_json::{Value, json};
use sys::netlink::Netlink;

use crate::support::{
    Directory, EARMARK, Ended, earmark, has, in_network, needs, on_host, run, run_line,
};

/// A host with a pair of devices, `one` and `two`.
fn host_with_veth() -> Host {
    let host = Host::create("a", &[Station::new("a", 1)]).unwrap_or_else(|error| panic!("{error}"));
    let made = host.enter_net(|| {
        let netlink = Netlink::open()?;
        netlink.add_veth("one", "two")?;
        netlink.up("one")?;
        netlink.up("two")
    });
    made.unwrap().unwrap_or_else(|error| panic!("{error}"));
    host
}

/// The same with a TAP device, `tap`, whose `rx-frames` is 16.
fn host_with_tap() -> (Host, Tap) {
    let host = host_with_veth();
    let tap = Tap::create(&host, "tap", 1, 1500).unwrap();
    let ethtool = host.enter_net(Ethtool::open).unwrap().unwrap();
    ethtool.set_coalesce("tap", &Coalesce::new().with(Parameter::RxFrames, 16)).unwrap();
    (host, tap)
}

/// Runs the command on the host.
fn on(host: &Host, line: &str) -> Ended {
    on_host(host, &mut earmark(&line.split(' ').collect::<Vec<_>>()))
}

/// The one device of `show DEVICE --json`.
fn shown(host: &Host, device: &str) -> Value {
    let json = on(host, &format!("show {device} --json")).json();
    assert_eq!(json["schema_version"], 2);
    assert_eq!(json["devices"].as_array().unwrap().len(), 1);
    json["devices"][0].clone()
}

#[test]
fn show__of_a_veth__says_what_defers_its_interrupts() {
    needs!("lab", "ethtool");
    let host = host_with_veth();
    let before = shown(&host, "one");
    assert_eq!((&before["driver"]["name"], &before["coalescing"]), (&"veth".into(), &Value::Null));
    assert_eq!(before["deferral"]["gro_flush_timeout"], 0);
    let change = Deferral {
        gro_flush_timeout: Some(345_000),
        napi_defer_hard_irqs: Some(3),
        threaded: None,
    };
    host.enter_net(|| write_deferral(&Root::here(), "one", &change)).unwrap().unwrap();
    on(&host, "show one").says(&["gro_flush_timeout 345 us, napi_defer_hard_irqs 3"]);
    // Only with GRO it is polled.
    on_host(&host, Command::new("ethtool").args(["-K", "one", "gro", "on"])).output();
    let text = on(&host, "show one").output().to_owned();
    let first: Vec<&str> = text.lines().take(2).collect();
    assert_eq!(first[0], "one: what delays a packet that it receives alone");
    assert!(first[1].starts_with("  Up to 345 us:   after a poll interrupts stay off"), "{text}");
    assert!(text.contains("its driver has no such settings"), "{text}");
    assert!(text.lines().count() <= 45 && text.lines().all(|line| line.chars().count() <= 100));
    let delay = &shown(&host, "one")["delays"][0];
    assert_eq!((&delay["cause"], &delay["up_to_us"]), (&"napi-deferral".into(), &345.0.into()));
    // Nothing of it was the machine's.
    assert!(!text.contains("eth0"), "{text}");
}

#[test]
fn show__changes_nothing() {
    needs!("lab");
    let host = host_with_veth();
    let look = "mount -t sysfs s /mnt; cd /mnt/class/net/one; cat mtu gro_flush_timeout \
                napi_defer_hard_irqs threaded flags queues/*/*s; umount /mnt";
    let look = || on_host(&host, Command::new("sh").args(["-c", look])).stdout;
    let before = look();
    assert!(before.starts_with("1500\n"), "{before}");
    on(&host, "show one").output();
    on(&host, "watch one --count 1 --interval 0.01").output();
    assert_eq!(look(), before);
}

#[test]
fn show__without_a_device__has_a_line_for_each() {
    needs!("lab");
    let (host, _tap) = host_with_tap();
    let ended = on(&host, "show");
    let lines: Vec<&str> = ended.output().lines().collect();
    assert_eq!(lines.len(), 3, "{ended:?}");
    for (line, begin) in lines.iter().zip(["one: veth; up", "tap: tun", "two: veth; up"]) {
        assert!(line.starts_with(begin), "{ended:?}");
    }
    assert!(ended.stderr.contains("earmark show one"), "{ended:?}");
    let names = |line: &str| {
        let devices = on(&host, line).json()["devices"].take();
        let names = devices.as_array().unwrap().iter().map(|it| it["name"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("show --json").len(), 3);
    assert_eq!(names("show two one --json"), ["two", "one"]);
    on(&host, "show tap").says(&["coalescing   rx-frames 16: so many that are written"]);
    on(&host, "show lo").says(&["the loopback"]);
    for name in ["no-such", "../one", "a-name-that-is-far-too-long"] {
        for command in ["show", "watch"] {
            let words = ["no network device", "there are: lo, one, tap, two"];
            on(&host, &format!("{command} {name}")).refused(&words);
            on(&host, &format!("{command} tpa")).refused(&["is tap meant?"]);
        }
    }
}

#[test]
fn watch__counts_what_goes_through() {
    needs!("lab", "bash");
    let host = host_with_veth();
    let mut watch = earmark(&["watch", "lo", "--json", "--interval", "0.5", "--count", "1"]);
    let watch = host.spawn(watch.stdout(Stdio::piped())).unwrap();
    // Datagrams to a port without a socket, until it has looked; errors come back for them.
    let mut send = Command::new("bash");
    send.args(["-c", "while :; do echo > /dev/udp/127.0.0.1/9; sleep 0.005; done"]);
    let mut sender = host.spawn(send.stderr(Stdio::null())).unwrap();
    let line = Ended::from(watch.wait_with_output().unwrap()).json();
    sender.kill().unwrap();
    sender.wait().unwrap();
    assert_eq!((&line["schema_version"], &line["device"]), (&2.into(), &"lo".into()));
    assert!(line["rx_packets_per_s"].as_f64() > Some(2.0), "{line}");
    assert_eq!(line["rx_packets_per_s"], line["tx_packets_per_s"], "{line}");
    assert_eq!(line["interrupts_per_s"], Value::Null);
}

#[test]
fn watch__has_plain_lines_and_says_that_its_device_is_gone() {
    needs!("lab", "ip");
    let host = host_with_veth();
    let both = on(&host, "watch two one --interval 0.01 --count 2");
    let names: Vec<_> = both.output().lines().map(|line| line.get(..3).unwrap().trim()).collect();
    assert_eq!(names, ["", "two", "one", "two", "one"]);
    let ended = on(&host, "watch one --interval 0.01 --count 25");
    let lines: Vec<&str> = ended.output().lines().collect();
    assert_eq!(lines.len(), 26, "one header, and no more of them where no one scrolls");
    assert!(lines[0].contains("rx pkt/int") && !ended.output().contains('\x1b'));
    assert!(lines[1..].iter().all(|line| line.starts_with("one ")), "{ended:?}");

    let mut watch = earmark(&["watch", "one", "--interval", "0.01"]);
    let mut child = host.spawn(watch.stdout(Stdio::piped()).stderr(Stdio::piped())).unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    on_host(&host, Command::new("ip").args(["link", "delete", "one"])).output();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    has(&errors, &["one has gone; watch it again when it is back"]);
}

#[test]
fn names_that_a_terminal_would_obey_or_that_are_no_text_are_shown_escaped() {
    needs!("network");
    let ended = in_network(
        &Directory::new(),
        "set -- \"$(printf 'e\\033[2Jx')\" \"$(printf 'y\\377')\"
         ip link add \"$1\" type veth peer name \"$2\"
         earmark show; earmark show \"$1\" --sample 0 | head -1
         earmark apply \"$1\" gro-flush-timeout 5us; earmark rollback
         earmark show \"$2\" || true",
    );
    let escaped = "e\\u{1b}[2Jx";
    ended.says(&[
        &format!("{escaped}: what delays a packet"),
        &format!("{escaped}: gro-flush-timeout 0ns -> 5000ns"),
        &format!("{escaped} is as it was"),
    ]);
    assert!(!ended.stdout.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'), "{ended:?}");
    // Named as an argument, it is refused and not taken for another.
    has(&ended.stderr, &["y\\xff: its name is no UTF-8", "UTF-8 was detected"]);
}

/// Checks devices of the host against a policy.
fn check(host: &Host, policy: &str, arguments: &[&str]) -> Ended {
    let directory = Directory::new();
    let policy = directory.write("policy.toml", policy);
    on_host(host, earmark(&["show", "--check", &policy]).args(arguments))
}

#[test]
fn the_exit_status_of_a_check_says_whether_rules_hold() {
    needs!("lab");
    let (host, _tap) = host_with_tap();
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
    let policy = "[all]\nrx-frames = { max = 8 }\n[ice]\nmatch = { driver = \"ice\" }\nmtu = 1\n";
    let ended = check(&host, policy, &["--json"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (3, "no device is of the group ice\n"));
    let checked = ended.printed_json();
    assert_eq!(
        ["schema_version", "holds", "broken", "unknown"].map(|name| &checked[name]),
        [2, 0, 1, 2]
    );
    assert_eq!(checked["empty_groups"], json!(["ice"]));
    let expected = json!({
        "name": "tap", "driver": "tun", "groups": ["all"],
        "rules": [{
            "group": "all", "rule": "rx-frames", "allowed": "<= 8", "outcome": "broken",
            "value": 16.0, "found": "16", "why": null, "fix": "earmark apply tap rx-frames 8",
        }],
    });
    assert_eq!(checked["devices"][1], expected);
}

#[test]
fn a_broken_rule_is_a_line_with_the_command_that_corrects_it() {
    needs!("lab", "ip");
    let (host, _tap) = host_with_tap();
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
    let state = Directory::new();
    for line in &lines[..3] {
        let (_, correct) = line.split_once("; ").unwrap();
        let correct = correct.replace("earmark ", &format!("{EARMARK} "));
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &correct]).env("EARMARK_STATE_DIR", state.path());
        on_host(&host, shell).output();
    }
    let ended = check(&host, policy, &[]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (4, 2), "{ended:?}");
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
        has(&ended.stderr, &[words]);
    }
    let ended = run_line("show --check no-such");
    assert_eq!(ended.code, 2);
    has(&ended.stderr, &["low-latency, throughput, time-server"]);
    for policy in ["low-latency", "throughput", "time-server"] {
        let ended = run_line(&format!("show lo --check {policy}"));
        assert!([0, 3, 4].contains(&ended.code), "{ended:?}");
        assert!(ended.stdout.ends_with(" unknown\n"), "{ended:?}");
    }
}
