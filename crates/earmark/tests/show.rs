//! `earmark show` and `earmark watch`, on devices of networks of our own.
#![allow(non_snake_case, reason = "test names are subject__case")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use lab::host::Host;
use lab::station::Station;
use lab::tap::Tap;
use netdev::Root;
use netdev::deferral::{Deferral, write_deferral};
use netdev::ethtool::{Coalesce, Ethtool, Parameter};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sys::netlink::Netlink;

mod common;
use common::{EARMARK, Ended, Lab, earmark, needs, run};

fn host() -> Host {
    Host::create("a", &[Station::new("a", 1)]).unwrap_or_else(|error| panic!("{error}"))
}

/// A host with a pair of devices, `one` and `two`.
fn host_with_veth() -> Host {
    let host = host();
    let made = host.enter_net(|| {
        let netlink = Netlink::open()?;
        netlink.add_veth("one", "two")?;
        netlink.up("one")?;
        netlink.up("two")
    });
    made.unwrap().unwrap_or_else(|error| panic!("{error}"));
    host
}

/// Runs the command on the host.
fn on(host: &Host, arguments: &[&str]) -> Ended {
    let output = host.output(&mut earmark(arguments)).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// The one device of `show DEVICE --json`.
fn shown(host: &Host, device: &str) -> Value {
    let json = on(host, &["show", device, "--json"]).json();
    assert_eq!(json["schema_version"], 2);
    assert_eq!(json["devices"].as_array().unwrap().len(), 1);
    json["devices"][0].clone()
}

#[test]
fn show__of_a_veth__says_what_defers_its_interrupts() {
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

    let text = on(&host, &["show", "one"]).output().to_owned();
    assert!(text.contains("gro_flush_timeout 345 us, napi_defer_hard_irqs 3"), "{text}");
    // Only with GRO it is polled.
    needs("ethtool", "ethtool");
    let mut gro = Command::new("ethtool");
    assert!(host.output(gro.args(["-K", "one", "gro", "on"])).unwrap().status.success());
    let text = on(&host, &["show", "one"]).output().to_owned();
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
fn show__of_a_tap__has_its_only_setting() {
    let host = host();
    let _tap = Tap::create(&host, "tap", 1, 1500).unwrap();
    let ethtool = host.enter_net(Ethtool::open).unwrap().unwrap();
    ethtool.set_coalesce("tap", &Coalesce::new().with(Parameter::RxFrames, 16)).unwrap();
    let text = on(&host, &["show", "tap"]).output().to_owned();
    assert!(text.contains("coalescing   rx-frames 16: so many that are written"), "{text}");
    assert_eq!(shown(&host, "tap")["coalescing"]["parameters"]["rx-frames"], 16);
}

#[test]
fn show_and_watch__of_a_guests_nic__know_its_queues() {
    needs("ethtool", "ethtool");
    let mut lab = Lab::start(&["--hosts", "uml", "--queues", "2", "--strategy", "delay:75"]);
    let mut ask = |script: &str| {
        let (status, text) = lab.ask(script);
        assert_eq!(status, 0, "{script}: {text}");
        text
    };
    ask("ethtool -L a0 combined 2");
    ask("ethtool --per-queue a0 queue_mask 0x2 --coalesce rx-usecs 500");
    let shown: Value = serde_json::from_str(&ask(&format!("{EARMARK} show a0 --json"))).unwrap();
    let device = &shown["devices"][0];
    assert_eq!(device["coalescing"]["parameters"]["rx-usecs"], 75, "{device}");
    assert_eq!(device["queue_coalescing"].as_array().unwrap().len(), 1, "{device}");
    assert_eq!(device["queue_coalescing"][0]["queue"], 1);
    assert_eq!(device["queue_coalescing"][0]["coalesce"]["parameters"]["rx-usecs"], 500);
    assert_eq!(device["delays"][0]["up_to_us"], 500.0, "{device}");
    assert_eq!(device["channels"]["combined"], 2);
    assert_eq!(device["bus"], "virtio");

    let watch =
        format!("ping -q -i 0.01 b >/dev/null & {EARMARK} watch a0 --json --count 1 && kill $!");
    let line: Value = serde_json::from_str(&ask(&watch)).unwrap();
    let number = |name: &str| line[name].as_f64().unwrap();
    assert!(number("rx_packets_per_s") > 1.0, "{line}");
    // This guest has another virtio device, and nothing says which interrupt is whose.
    assert_eq!(line["rx_packets_per_interrupt"], Value::Null, "{line}");
    let queues = line["queues"].as_array().unwrap();
    let packets = |queue: &Value| queue["packets_per_s"].as_f64().unwrap();
    let received: f64 = queues.iter().filter(|it| it["direction"] == "rx").map(packets).sum();
    assert_eq!(queues.len(), 4, "{line}");
    assert!(received > 1.0, "{line}");
    lab.end().output();
}

#[test]
fn show__changes_nothing() {
    let host = host_with_veth();
    let look = || {
        let mut look = Command::new("sh");
        look.args([
            "-c",
            "mount -t sysfs s /mnt; cd /mnt/class/net/one; \
            cat mtu gro_flush_timeout napi_defer_hard_irqs threaded flags queues/*/*s; umount /mnt",
        ]);
        String::from_utf8(host.output(&mut look).unwrap().stdout).unwrap()
    };
    let before = look();
    assert!(before.starts_with("1500\n"), "{before}");
    on(&host, &["show", "one"]).output();
    on(&host, &["watch", "one", "--count", "1", "--interval", "0.01"]).output();
    assert_eq!(look(), before);
}

#[test]
fn show__without_a_device__has_a_line_for_each() {
    let host = host_with_veth();
    let ended = on(&host, &["show"]);
    let lines: Vec<&str> = ended.output().lines().collect();
    assert_eq!(lines.len(), 2, "{ended:?}");
    assert!(lines[0].starts_with("one: veth; up"), "{ended:?}");
    assert!(lines[1].starts_with("two: veth; up"), "{ended:?}");
    assert!(ended.stderr.contains("earmark show one"), "{ended:?}");
    assert_eq!(on(&host, &["show", "--json"]).json()["devices"].as_array().unwrap().len(), 2);
    let empty = on(&self::host(), &["show"]);
    assert_eq!(empty.output(), "");
    assert!(empty.stderr.contains("only the loopback"), "{empty:?}");
    assert!(on(&self::host(), &["show", "lo"]).output().contains("the loopback"));
}

#[test]
fn unknown_devices_and_odd_numbers__are_refused_with_a_next_step() {
    let host = host_with_veth();
    for name in ["no-such", "", "../one", "a-name-that-is-far-too-long"] {
        for command in ["show", "watch"] {
            on(&host, &[command, name]).refused(&["no network device", "there are: lo, one, two"]);
        }
    }
    run(&["show", "lo", "--sample", "-1"]).refused(&[]);
    run(&["show", "lo", "--sample", "61"]).refused(&["--sample", "outside 0 to 60 seconds"]);
    run(&["watch", "lo", "--interval", "0"])
        .refused(&["--interval", "outside 0.01 to 3600 seconds"]);
    run(&["watch", "lo", "--interval", "nan"]).refused(&["--interval"]);
}

#[test]
fn watch__counts_what_goes_through() {
    let host = host();
    let mut watch = earmark(&["watch", "lo", "--json", "--interval", "0.5", "--count", "1"]);
    let watch = host.spawn(watch.stdout(Stdio::piped())).unwrap();
    // Datagrams to a port without a socket, until it has looked; errors come back for them.
    let mut send = Command::new("bash");
    send.args(["-c", "while :; do echo > /dev/udp/127.0.0.1/9; sleep 0.005; done"]);
    let mut sender = host.spawn(send.stderr(Stdio::null())).unwrap();
    let output = watch.wait_with_output().unwrap();
    sender.kill().unwrap();
    sender.wait().unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["schema_version"], &line["device"]), (&2.into(), &"lo".into()));
    assert!(line["rx_packets_per_s"].as_f64() > Some(2.0), "{line}");
    assert_eq!(line["rx_packets_per_s"], line["tx_packets_per_s"], "{line}");
    assert_eq!(line["interrupts_per_s"], Value::Null);
}

#[test]
fn watch__plain_lines_and_an_end_by_ctrl_c() {
    let host = host_with_veth();
    let ended = on(&host, &["watch", "one", "--interval", "0.01", "--count", "25"]);
    let lines: Vec<&str> = ended.output().lines().collect();
    assert_eq!(lines.len(), 26, "one header, and no more of them where nobody scrolls");
    assert!(lines[0].contains("rx pkt/int") && !ended.output().contains('\x1b'));
    assert!(lines[1..].iter().all(|line| line.starts_with("one ")), "{ended:?}");

    let mut child = earmark(&["watch", "lo", "--interval", "0.01"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

#[test]
fn watch__of_a_device_that_goes__says_so() {
    let host = host_with_veth();
    let mut watch = earmark(&["watch", "one", "--interval", "0.01"]);
    let mut child = host.spawn(watch.stdout(Stdio::piped()).stderr(Stdio::piped())).unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    needs("ip", "iproute2");
    let mut remove = Command::new("ip");
    host.output(remove.args(["link", "delete", "one"])).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(said.contains("one has gone; watch it again when it is back"), "{said}");
}

#[test]
fn names_that_a_terminal_would_obey_or_that_are_no_text_are_shown_escaped() {
    let state = common::Directory::new();
    let ended = common::in_network(
        &state,
        "set -- \"$(printf 'e\\033[2Jx')\" \"$(printf 'y\\377')\"
         ip link add \"$1\" type veth peer name \"$2\"
         earmark show; earmark show \"$1\" --sample 0 | head -1
         earmark apply \"$1\" gro-flush-timeout 5us; earmark rollback
         earmark show \"$2\" || true",
    );
    let escaped = "e\\u{1b}[2Jx";
    let said = ended.output();
    assert!(said.contains(&format!("{escaped}: what delays a packet")), "{ended:?}");
    assert!(said.contains(&format!("{escaped}: gro-flush-timeout 0ns -> 5000ns")), "{ended:?}");
    assert!(said.contains(&format!("{escaped} is as it was")), "{ended:?}");
    assert!(!said.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'), "{ended:?}");
    assert!(ended.stderr.contains("y\\xff: its name is no UTF-8"), "{ended:?}");
    // Named as an argument, it is refused and not taken for another.
    assert!(ended.stderr.contains("UTF-8 was detected"), "{ended:?}");
}
