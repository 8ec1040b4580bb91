//! Linux's `iavf` on an adaptive virtual function, against what its registers and messages mean.

use serde_json::Value;

mod common;
use common::virtual_bench::{self, TICK_US, number, result};
use common::{Directory, holds, needs, run};

/// What a ping of 98 bytes takes there and back over the usual cable: 20 us and 122 bytes at
/// 1 Gbit/s, each way.
const PING_NS: u64 = 2 * (20_000 + 122 * 8);

/// What the guests say that play these scripts.
#[track_caller]
fn lab(options: &[&str], on_a: &str, on_b: &str) -> String {
    needs("ping", "iputils-ping");
    needs("ethtool", "ethtool");
    let always = ["lab", "run", "--time", "virtual", "--nic", "iavf"];
    run(&[&always[..], options, &["--on", "a", on_a, "--on", "b", on_b]].concat())
        .output()
        .to_owned()
}

/// Pings on a, one when the other is back. The first of them follow a pause.
const PINGS: &str = "ping -4 -q -c 10 -A b > /dev/null";

const FIXED: &str = "adaptive-rx off adaptive-tx off tx-usecs 0 rx-usecs";

#[test]
fn a_packet_waits_for_the_interval_to_the_nanosecond() {
    let directory = Directory::new();
    let path = directory.file("lab.pcapng");
    let set = |host: char, usecs: u32| format!("ethtool -C {host}0 {FIXED} {usecs}");
    // The driver writes an interval when it polls for the first time after that.
    let on_a = format!(
        "sleep 0.5; {}; {PINGS}; {}; {PINGS}; {}; {PINGS}",
        set('a', 120),
        set('a', 51),
        set('a', 0)
    );
    let on_b = format!("{}; sleep 5", set('b', 0));
    lab(&["--pcap", &path], &on_a, &on_b);
    let holds = holds(&path);
    // The registers count in 2 us, and the driver rounds up.
    for interval in [120_000, 52_000] {
        let seen = holds.get(&(0, interval - PING_NS)).copied().unwrap_or(0);
        assert!((7..=10).contains(&seen), "{interval}: {holds:?}");
    }
    // b's all, and those of the last ten.
    assert!(holds[&(0, 0)] >= 38, "{holds:?}");
}

#[test]
fn each_queue_has_its_own_interval_and_rules_choose_the_queue() {
    let directory = Directory::new();
    let path = directory.file("lab.pcapng");
    let on_a = format!("ethtool -C a0 {FIXED} 0; sleep 2; {PINGS}; sleep 4");
    let on_b = format!(
        "ethtool -L b0 combined 2; sleep 0.5; ethtool -C b0 {FIXED} 0;
        ethtool --per-queue b0 queue_mask 2 --coalesce rx-usecs 200;
        ethtool -N b0 flow-type ip4 src-ip 10.9.0.1 action 1 loc 5; sleep 0.1;
        ethtool -l b0; ethtool -n b0; ethtool -x b0; ethtool --per-queue b0 queue_mask 3 --show-coalesce;
        sleep 4; ethtool -S b0; ethtool -N b0 delete 5; sleep 0.1; ethtool -n b0"
    );
    let said = lab(&["--queues", "4", "--pcap", &path], &on_a, &on_b);
    for words in [
        "Combined:\t4",
        "Combined:\t2",
        "Filter: 5\n",
        "Direct to queue 1",
        "with 2 RX ring(s)",
        "    0:      0     1     0     1     0     1     0     1",
        "rx-usecs: 200",
        "rx-1.packets: 10\n",
        "Total 0 rules",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    let holds = holds(&path);
    // Between an answer and the next request, ping looks at its clock.
    let longest = 200_000 - PING_NS;
    let is_interval = |hold: u64| (longest - 1_000..=longest).contains(&hold);
    let held = holds.iter().filter(|((queue, hold), _)| *queue == 1 && is_interval(*hold));
    assert!(held.map(|(_, times)| times).sum::<usize>() >= 8, "{holds:?}");
}

#[test]
fn the_drivers_adaptive_algorithm_chooses_what_its_source_says() {
    // `iavf_update_itr` for few packets, at 1000 Mbit/s: half of what the size asks for, in 64ths,
    // rounded up, in steps of 2 us. Frames of at most 60 bytes count 4096, one of 67 bytes, as a
    // byte over TCP, 67 * 40 + 1696.
    for (workload, weight) in [("udp-rr", 4_096_u32), ("tcp-rr", 67 * 40 + 1_696)] {
        let result = result(&format!("{workload} --duration 0.02 --nic iavf"));
        let expected = f64::from((weight / 2).div_ceil(64) * 2);
        let seen = virtual_bench::p50(&result);
        assert!((seen - expected).abs() <= TICK_US, "{workload}: {seen} us, expected {expected}");
    }
}

#[test]
fn marks_and_strategies_take_the_place_of_the_registers() {
    let p50 = |words: &str| virtual_bench::p50(&result(&format!("udp-rr --duration 0.02 {words}")));
    let free = p50("-s disabled");
    for words in
        ["-s disabled", "-s marked:75 --mark length<=200", "-s marked+driver --mark length<=200"]
    {
        let seen = p50(&format!("--nic iavf {words}"));
        assert!((seen - free).abs() <= TICK_US, "{words}: {seen} us, expected {free}");
    }
}

#[test]
fn a_stream_of_tcp_arrives_whole_at_the_rate_of_the_cable() {
    // Segments and checksums are the function's work; the function at the other end checks each.
    for (mtu, payload, wire) in [(1_500, 1_448.0, 1_538.0), (9_000, 8_948.0, 9_038.0)] {
        let result = result(&format!("bulk --duration 0.02 --nic iavf --mtu {mtu}"));
        let (rate, most) = (number(&result, "bulk_bits_per_s") / 1e6, 1_000.0 * payload / wire);
        assert!((most * 0.98..=most * 1.001).contains(&rate), "{mtu}: {rate} of {most} Mbit/s");
    }
}

#[test]
fn costs_fit_into_an_interval_and_are_paid_by_each_queue() {
    let p50 = |words: &str| virtual_bench::p50(&result(&format!("udp-rr --duration 0.02 {words}")));
    let [free, paid] = ["--seed 1", "--interrupt-cost 3000 --packet-cost 2000"]
        .map(|costs| p50(&format!("--nic iavf {costs}")));
    // 42 us of wire and 10 of cost fit into the 64 us that the driver chooses.
    assert!((free - 64.0).abs() <= TICK_US && (paid - free).abs() <= TICK_US, "{free}, {paid}");

    let on_b = "ethtool -L b0 combined 2; sleep 0.5;
        ethtool -N b0 flow-type ip4 src-ip 10.9.0.1 action 1 loc 5; sleep 4; ethtool -S b0";
    let on_a = "sleep 2; ping -4 -q -c 1 b >/dev/null; ping -4 -q -c 3 -i 0.2 b; sleep 4";
    let costs = ["--interrupt-cost", "3000", "--packet-cost", "2000", "-s", "disabled"];
    let said = lab(&[&["--queues", "2"][..], &costs].concat(), on_a, on_b);
    assert!(said.contains("rx-1.packets: 4\n"), "{said}");
    let times = said.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    let least = times.and_then(|times| times.split_once('/')).map(|(least, _)| least);
    let least = least.expect("times").parse::<f64>().unwrap() * 1e3;
    let expected = (PING_NS + 2 * 5_000) as f64 / 1e3;
    assert!((expected - 1.0..=expected + 1.5).contains(&least), "{least} us, expected {expected}");
}

#[test]
fn two_runs_are_the_same() {
    let words = "tcp-rr --duration 0.02 --nic iavf";
    let [one, other] = [result(words), result(words)].map(|mut result| {
        result["environment"] = Value::Null;
        result
    });
    assert_eq!(one, other);
}

#[test]
fn what_the_function_has_not_is_refused() {
    for (words, why) in [
        ("--queues 17", "at most 16"),
        ("--mtu 9800", "at most 9702 bytes"),
        ("--driver-options debug=1", "no parameters"),
    ] {
        let words = format!("bench ping --world virtual --nic iavf {words}");
        run(&words.split(' ').collect::<Vec<_>>()).refused(&[why]);
    }
}
