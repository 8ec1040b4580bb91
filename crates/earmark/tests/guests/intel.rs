//! Linux's own drivers for Intel's NICs, against what their registers and messages mean.

use crate::support::results::{TICK_US, assert_near, holds, number, p50, result};
use crate::support::{Directory, has, lab_run, needs};

/// The median round trip of a datagram.
#[track_caller]
fn udp(more: &str) -> f64 {
    p50(&result(&format!("udp-rr --duration 0.02 {more}")))
}

#[track_caller]
fn assert_close(seen: f64, expected: f64, what: &str) {
    assert_near(seen, expected, TICK_US, what);
}

#[test]
fn drivers_wait_as_their_registers_say() {
    needs!("guests");
    let free = udp("-s disabled");
    let e1000e = |options: &str| udp(&format!("--nic e1000e --driver-options {options}"));
    assert_close(e1000e("RxIntDelay=0,InterruptThrottleRate=0"), free, "no moderation");
    // The driver's own default for this card: 32 ticks of 1.024 us, on either side.
    assert_close(udp("--nic e1000e"), free + 2.0 * 32.768, "the driver's default");
    assert_close(e1000e("RxIntDelay=100,RxAbsIntDelay=50"), free + 2.0 * 51.2, "50 ticks");
    // The first article: 8000 interrupts a second, so 8000 round trips; 488 ticks of 256 ns.
    assert_close(e1000e("RxIntDelay=0,InterruptThrottleRate=8000"), 124.928, "8000 a second");
    let e1000 = |rate| udp(&format!("--nic e1000 --driver-options InterruptThrottleRate={rate}"));
    assert_close(e1000(0), free, "no moderation");
    // One period for the completion of the request, which is over before the answer is there, and
    // one for the answer: 195 ticks of 256 ns each.
    assert_close(e1000(20_000), 2.0 * 195.0 * 0.256, "20,000 a second");
}

#[test]
fn a_strategy_takes_the_place_of_the_registers_under_the_same_driver() {
    needs!("guests");
    let free = udp("-s disabled");
    for (words, more) in [
        ("--nic e1000e -s delay:75", 150.0),
        ("--nic e1000e -s disabled", 0.0),
        ("--nic e1000 -s delay:75", 150.0),
        ("--nic e1000 -s disabled", 0.0),
        ("--nic iavf -s disabled", 0.0),
        ("--nic e1000e -s marked:75 --mark length<=200", 0.0),
        ("--nic e1000e -s marked+driver --mark length<=200", 0.0),
        ("--nic iavf -s marked:75 --mark length<=200", 0.0),
        ("--nic iavf -s marked+driver --mark length<=200", 0.0),
    ] {
        assert_close(udp(words), free + more, words);
    }
}

#[test]
fn a_stream_of_tcp_arrives_whole_at_the_rate_of_the_cable() {
    needs!("guests");
    // Segments and checksums are the card's work; the other side's kernel checks each. Of a frame,
    // 1448 of 1538 bytes on the wire are payload, or 8948 of 9038.
    for nic in ["e1000e", "e1000", "iavf"] {
        for (mtu, part) in [(1_500, 1_448.0 / 1_538.0), (9_000, 8_948.0 / 9_038.0)] {
            let result = result(&format!("bulk --duration 0.02 --nic {nic} --mtu {mtu}"));
            let (rate, most) = (number(&result, "bulk_bits_per_s") / 1e6, 1_000.0 * part);
            // A frame of 9000 bytes is 0.36 percent of what comes in 0.02 s.
            let range = most * 0.98..=most * 1.004;
            assert!(range.contains(&rate), "{nic}, {mtu}: {rate} of {most}");
        }
    }
}

/// `iavf_update_itr` for few packets, at 1000 Mbit/s: half of what the size asks for, in 64ths,
/// rounded up, in steps of 2 us. Frames of at most 60 bytes count 4096, one of 67 bytes, as a byte
/// over TCP, 67 * 40 + 1696.
#[test]
fn iavf_chooses_what_its_source_says_and_costs_fit_into_it() {
    needs!("guests");
    for (workload, weight) in [("udp-rr", 4_096_u32), ("tcp-rr", 67 * 40 + 1_696)] {
        let seen = p50(&result(&format!("{workload} --duration 0.02 --nic iavf")));
        assert_close(seen, f64::from((weight / 2).div_ceil(64) * 2), workload);
    }
    // 42 us of wire and 10 of cost fit into the 64 us that the driver chooses.
    assert_close(udp("--nic iavf --interrupt-cost 3000 --packet-cost 2000"), 64.0, "with costs");
}

/// What a ping of 98 bytes takes there and back over the usual cable: 20 us and 122 bytes at
/// 1 Gbit/s, each way.
const PING_NS: u64 = 2 * (20_000 + 122 * 8);

/// What the guests print that play these scripts on NICs of iavf.
#[track_caller]
fn lab(options: &[&str], on_a: &str, on_b: &str) -> String {
    let always = ["--time", "virtual", "--nic", "iavf"];
    let hosts = ["--on", "a", on_a, "--on", "b", on_b];
    lab_run(&[&always[..], options, &hosts].concat()).output().to_owned()
}

/// Pings on a, one when the other is back. The first of them follow a pause.
const PINGS: &str = "ping -4 -q -c 10 -A b > /dev/null";

const FIXED: &str = "adaptive-rx off adaptive-tx off tx-usecs 0 rx-usecs";

#[test]
fn a_packet_waits_for_the_interval_to_the_nanosecond() {
    needs!("guests", "ping", "ethtool");
    let directory = Directory::new();
    let path = directory.file("lab.pcapng");
    let set = |host: char, usecs: u32| format!("ethtool -C {host}0 {FIXED} {usecs}");
    // The driver writes an interval when it polls for the first time after that.
    let steps = [120, 51, 0].map(|usecs| format!("{}; {PINGS}", set('a', usecs)));
    let on_b = format!("{}; sleep 5", set('b', 0));
    lab(&["--pcap", &path], &format!("sleep 0.5; {}", steps.join("; ")), &on_b);
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
    needs!("guests", "ping", "ethtool");
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
    let printed = lab(&["--queues", "4", "--pcap", &path], &on_a, &on_b);
    has(
        &printed,
        &[
            "Combined:\t4",
            "Combined:\t2",
            "Filter: 5\n",
            "Direct to queue 1",
            "with 2 RX ring(s)",
            "    0:      0     1     0     1     0     1     0     1",
            "rx-usecs: 200",
            "rx-1.packets: 10\n",
            "Total 0 rules",
        ],
    );
    let holds = holds(&path);
    // Between an answer and the next request, ping looks at its clock.
    let longest = 200_000 - PING_NS;
    let is_interval = |hold: u64| (longest - 1_000..=longest).contains(&hold);
    let held = holds.iter().filter(|((queue, hold), _)| *queue == 1 && is_interval(*hold));
    assert!(held.map(|(_, times)| times).sum::<usize>() >= 8, "{holds:?}");
}
