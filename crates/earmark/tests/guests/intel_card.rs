//! What a card of Intel's is to its driver besides interrupts: links, resets, self-tests, VLANs.
//! All in virtual time, so each expectation is exact.

use std::collections::BTreeMap;
use std::process::Command;

use crate::support::results::{TICK_US, number, p50, result};
use crate::support::{Directory, lab_run, needs, output};

const CARDS: [&str; 2] = ["e1000e", "e1000"];

/// What programs wrote in a lab in virtual time, with these options and commands.
#[track_caller]
fn lab(card: &str, options: &[&str]) -> String {
    let always = ["--time", "virtual", "--nic", card];
    lab_run(&[&always[..], options].concat()).output().to_owned()
}

/// What `ethtool -S` printed: counters by name.
fn counters(text: &str) -> BTreeMap<String, u64> {
    let pairs = text.lines().filter_map(|line| line.trim().split_once(": "));
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

#[test]
fn the_drivers_own_self_test_passes() {
    needs!("guests", "ethtool");
    for card in CARDS {
        // Registers, NVM, interrupts, 640 frames that come back, the link; then traffic as before.
        let text = lab(card, &["--on", "b", "ethtool -t b0 offline; sleep 3; ping -c 1 -4 a"]);
        assert!(text.contains("result is PASS"), "{card}: {text}");
        assert!(text.contains(" 0% packet loss"), "{card}: {text}");
    }
}

#[test]
fn a_link_that_was_down_loses_what_was_sent_meanwhile_and_nothing_else() {
    needs!("guests");
    for card in CARDS {
        // A frame every 100 ms; two of them while the cable is out, which their sender cannot see.
        let send = "for at in 1 2 3 4 5 6 7 8; do echo $at >/dev/udp/10.9.0.2/9; sleep 0.1; done";
        let send = format!("ping -c 1 -4 b >/dev/null; bash -c '{send}'");
        let flap = ["--at", "0.25", "b0 link down", "--at", "0.45", "b0 link up"];
        let count = "sleep 2; awk '/^Udp:/ {value = $3} END {print value}' /proc/net/snmp";
        let commands = ["--on", "a", &send, "--on", "b", count, "--until", "all"];
        let text = lab(card, &[&flap[..], &commands].concat());
        assert_eq!(text.trim(), "6", "{card}: datagrams to a port without a receiver");
    }
}

/// The EtherType, the numbers of VLANs and the direction of the pings of a capture, in order.
fn tagged_pings(path: &str) -> Vec<String> {
    let mut tshark = Command::new("tshark");
    let fields = ["-T", "fields", "-e", "vlan.id", "-e", "vlan.etype", "-e", "ip.src"];
    let filter = "icmp && frame.interface_name == \"b0\"";
    let ended = output(tshark.args(["-r", path, "-Y", filter]).args(fields));
    ended.output().lines().map(|line| line.replace('\t', " ")).collect()
}

#[test]
fn a_vlan_has_its_tag_from_the_card_and_other_vlans_are_filtered() {
    needs!("guests", "tshark", "ethtool");
    let vlan = |host: char, end: u8, id: u8| {
        format!(
            "ip link add link {host}0 name {host}0.{id} type vlan id {id}; \
             ip address add 10.{id}.0.{end}/24 dev {host}0.{id}; ip link set {host}0.{id} up; "
        )
    };
    // A virtual function asks for its counters, and has them a little later.
    let count = |host: char| {
        format!("ethtool -S {host}0 >/dev/null; sleep 3; ethtool -S {host}0 | sed 's/^ */{host}-/'")
    };
    for nic in [CARDS[0], CARDS[1], "iavf"] {
        let directory = Directory::new();
        let path = directory.file("lab.pcapng");
        let pings = "sleep 2; ping -c 2 -4 10.5.0.2; ping -c 1 -W 1 -4 10.6.0.2; sleep 3";
        let on_a = format!("{}{}{pings}; {}", vlan('a', 1, 5), vlan('a', 1, 6), count('a'));
        let on_b = format!("{}ethtool -k b0; sleep 9; {}", vlan('b', 2, 5), count('b'));
        let hosts = ["--on", "a", &on_a, "--on", "b", &on_b, "--until", "all"];
        let text = lab(nic, &[&["--pcap", &path][..], &hosts].concat());
        assert!(text.contains("2 packets transmitted, 2 received"), "{nic}: {text}");
        assert!(text.contains("1 packets transmitted, 0 received"), "{nic}: {text}");
        for offload in ["rx-vlan-offload: on", "tx-vlan-offload: on", "rx-vlan-filter: on"] {
            assert!(text.contains(offload), "{nic}: no `{offload}` in {text}");
        }
        let pair = ["5 0x0800 10.5.0.1", "5 0x0800 10.5.0.2"];
        assert_eq!(tagged_pings(&path), [pair, pair].concat(), "{nic}");
        // One question for an address of VLAN 5, and others of VLAN 6, which b is not in.
        let counted = counters(&text);
        let (sent, received) = (counted["a-tx_broadcast"], counted["b-rx_broadcast"]);
        // `e1000e_set_rx_mode` writes a value of RCTL in which the filter that it has just enabled
        // is off.
        let expected = if nic == "e1000e" { sent } else { 1 };
        assert!(sent > 1 && received == expected, "{nic}: {received} of {sent}");
    }
}

/// The acknowledgement that ends the handshake and the first request come right behind each other:
/// while the second of them is paid for, the driver re-arms.
#[test]
fn a_driver_that_rearms_while_a_frame_is_paid_for_learns_of_it() {
    needs!("guests");
    for nic in [
        "e1000 --driver-options InterruptThrottleRate=0",
        "e1000e --driver-options RxIntDelay=0,InterruptThrottleRate=0",
        "iavf",
    ] {
        let words = format!("tcp-rr --duration 0.02 --nic {nic} -s driver --packet-cost 1000");
        let longest = number(&result(&words)["latency_us"], "max");
        assert!(longest < 1_000.0, "{nic}: {longest} us; a lost segment comes again after 200 ms");
    }
}

#[test]
fn costs_are_charged_as_under_virtio() {
    needs!("guests");
    for nic in [
        "e1000e --driver-options RxIntDelay=0,InterruptThrottleRate=0",
        "e1000 --driver-options InterruptThrottleRate=0",
        "e1000e -s disabled",
        "iavf -s disabled",
    ] {
        let udp = |more: &str| p50(&result(&format!("udp-rr --duration 0.02 --nic {nic} {more}")));
        let free = udp("--seed 1");
        for costs in ["--interrupt-cost 3000", "--packet-cost 3000", "--send-cost 3000"] {
            let seen = udp(costs);
            assert!((seen - free - 6.0).abs() <= TICK_US, "{nic} {costs}: {seen}, free {free}");
        }
    }
}
