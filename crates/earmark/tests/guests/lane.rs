//! A queue of its own for what is urgent, in guests and in virtual time.

use serde_json::Value;

use crate::support::results::{self, number, p50};
use crate::support::{needs, run};

/// The results of `earmark bench` under each of `settings`, on two queues.
#[track_caller]
fn compared<const N: usize>(settings: [&str; N], words: &str) -> [Value; N] {
    let compare = settings.join(",");
    let words = format!("{words} --warmup 0.01 --queues 2 --compare {compare}");
    results::results(&words).try_into().unwrap()
}

fn steered(result: &Value) -> u64 {
    result["ports"].as_array().unwrap().iter().map(|port| port["steered"].as_u64().unwrap()).sum()
}

#[test]
fn beside_bulk_a_lane_is_as_fast_as_disabled_and_interrupts_as_a_delay() {
    needs!("guests");
    let words = "mixed --lane tcp-port=7000 --bulk-rate 300 --bulk-chunk 4096 --duration 0.05";
    let [disabled, delay, lane] = compared(["disabled", "delay:75", "lane:75"], words);
    assert_eq!(p50(&lane), p50(&disabled), "the urgent wait for nothing");
    assert!(p50(&delay) > 3.0 * p50(&lane));
    // Each packet of the lane costs one interrupt at most, and the bulk no more than before. What
    // that is as a ratio depends on the port numbers: under the delay, requests that the hash puts
    // into the queue of the bulk cost next to nothing.
    let interrupts = |result| number(result, "interrupts");
    assert!(interrupts(&lane) <= interrupts(&delay) + steered(&lane) as f64, "{lane} {delay}");
    // Fifty requests, as many answers, and nothing of the bulk.
    assert_eq!([&disabled, &delay, &lane].map(steered), [0, 0, 100]);
}

#[test]
fn a_lane_knows_no_message() {
    needs!("guests");
    let words = "tcp-rr --lane tcp-port=7000 --response-bytes 65536 --duration 0.02";
    let [disabled, marked, lane] = compared(["disabled", "marked:75", "lane:75"], words);
    let interrupts = |result| number(result, "interrupts_per_s");
    assert_eq!(interrupts(&lane), interrupts(&disabled), "each packet of the flow interrupts");
    assert!(interrupts(&lane) > 4.0 * interrupts(&marked));
    // A rule that divides the flow: the end of an answer arrives before what waits.
    let words = words.replace("7000", "7000&length<=512");
    let [marked, lane] = compared(["marked:75", "lane:75"], &words);
    assert!(p50(&lane) > p50(&marked) + 10.0, "{lane} {marked}");
}

#[test]
fn the_driver_of_a_guest_knows_its_lane() {
    needs!("guests", "ethtool");
    let show = "ethtool --per-queue a0 --show-coalesce";
    let setting = ["--queues", "2", "--strategy", "lane:75", "--lane", "tcp-port=7000"];
    let command = ["lab", "run", "--time", "virtual", "--on", "a", show];
    let ended = run(&[&command[..], &setting].concat());
    let usecs = ended.output().lines().filter_map(|line| line.strip_prefix("rx-usecs:"));
    assert_eq!(usecs.map(str::trim).collect::<Vec<_>>(), ["75", "0"], "{ended:?}");
}
