//! Linux's own drivers for Intel's NICs, against what their registers mean.

use serde_json::Value;

mod common;
use common::run;
use common::virtual_bench::{self, TICK_US, number, result};

/// The median round trip of a datagram.
#[track_caller]
fn p50(more: &str) -> f64 {
    virtual_bench::p50(&result(&format!("udp-rr --duration 0.02 {more}")))
}

#[track_caller]
fn assert_close(seen: f64, expected: f64, what: &str) {
    assert!((seen - expected).abs() <= TICK_US, "{what}: {seen} us, expected {expected}");
}

#[test]
fn e1000e_waits_as_its_registers_say() {
    let free = p50("-s disabled");
    let with = |options: &str| p50(&format!("--nic e1000e --driver-options {options}"));
    assert_close(with("RxIntDelay=0,InterruptThrottleRate=0"), free, "no moderation");
    // The driver's own default for this card: 32 ticks of 1.024 us, on either side.
    assert_close(p50("--nic e1000e"), free + 2.0 * 32.768, "the driver's default");
    assert_close(with("RxIntDelay=100,RxAbsIntDelay=50"), free + 2.0 * 51.2, "a bound of 50 ticks");
    // The first article: 8000 interrupts a second, so 8000 round trips; 488 ticks of 256 ns.
    assert_close(with("RxIntDelay=0,InterruptThrottleRate=8000"), 124.928, "8000 a second");
}

#[test]
fn e1000_spends_an_interrupt_on_what_it_has_sent() {
    let with = |rate: u32| format!("--nic e1000 --driver-options InterruptThrottleRate={rate}");
    assert_close(p50(&with(0)), p50("-s disabled"), "no moderation");
    // One period for the completion of the request, which is over before the answer is there, and
    // one for the answer: 195 ticks of 256 ns each.
    assert_close(p50(&with(20_000)), 2.0 * 195.0 * 0.256, "20,000 a second");
}

#[test]
fn a_strategy_takes_the_place_of_the_registers_under_the_same_driver() {
    let free = p50("-s disabled");
    for nic in ["e1000e", "e1000"] {
        let with = |setting: &str| p50(&format!("--nic {nic} -s {setting}"));
        assert_close(with("delay:75"), free + 150.0, nic);
        assert_close(with("disabled"), free, nic);
    }
    let marks = "--mark length<=200 --nic e1000e";
    assert_close(p50(&format!("{marks} -s marked:75")), free, "marks instead of the registers");
    assert_close(p50(&format!("{marks} -s marked+driver")), free, "marks beside the registers");
}

#[test]
fn a_stream_of_tcp_arrives_whole_at_the_rate_of_the_cable() {
    // Segments and checksums are the card's work; the other side's kernel checks each.
    for nic in ["e1000e", "e1000"] {
        let result = result(&format!("bulk --duration 0.02 --nic {nic}"));
        let rate = number(&result, "bulk_bits_per_s") / 1e6;
        // 1448 of 1538 bytes on the wire are payload.
        assert!((rate - 941.5).abs() < 3.0, "{nic}: {rate} Mbit/s");
    }
}

#[test]
fn two_runs_are_the_same() {
    let words = "tcp-rr --duration 0.02 --nic e1000e";
    let [one, other] = [result(words), result(words)].map(|mut result| {
        result["environment"] = Value::Null;
        result
    });
    assert_eq!(one, other);
}

#[test]
fn what_the_cards_have_not_is_refused() {
    for (words, why) in [
        ("-s driver", "no registers"),
        ("--compare driver,delay:75", "no registers"),
        ("--nic e1000e --queues 2", "--queues"),
        ("--nic e1000 --driver-options RxIntDelay", "NAME=VALUE"),
    ] {
        let words = format!("bench ping --world virtual {words}");
        let words: Vec<&str> = words.split(' ').collect();
        run(&words).refused(&[why]);
    }
}

/// 70,000 and 20,000 interrupts a second, in whole ticks of 256 ns, as `e1000_update_itr` and
/// `e1000_set_itr` of e1000e choose them.
#[test]
fn e1000e_changes_its_interval_when_a_flow_begins() {
    let json = run(&["adaptive", "--nic", "e1000e", "--json", "rr-then"]).json();
    let modes = json["traffic"][0]["modes"].as_array().unwrap();
    let intervals = |mode: usize| -> Vec<f64> {
        let seen = modes[mode]["intervals"].as_array().unwrap().iter();
        seen.map(|seen| number(seen, "interval_us")).collect()
    };
    assert_eq!(intervals(0), [55.0 * 0.256, 195.0 * 0.256], "{json}");
    let changed = number(&modes[0]["intervals"][1], "at_us");
    assert!((100_000.0..=101_000.0).contains(&changed), "{json}");
    assert_eq!((intervals(1), intervals(2)), (vec![195.0 * 0.256], vec![488.0 * 0.256]), "{json}");
    let p50 = |mode: usize| number(&modes[mode]["latency_us"], "p50");
    // Beside the flow, in the second half, where a period of either dynamic mode is the same.
    assert!([0, 1].iter().all(|&mode| p50(3) < p50(mode) && p50(mode) < p50(2)), "{json}");
}
