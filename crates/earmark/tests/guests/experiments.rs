//! Every experiment of the live world runs in virtual time, and the figures that it has there are
//! figures.

use serde_json::Value;

use crate::support::results::{number, result};
use crate::support::{needs, run, run_line};

#[test]
fn askers_are_answered() {
    needs!("guests");
    for (experiment, more) in [
        ("tcp-rr", ""),
        ("udp-rr", ""),
        ("ping", ""),
        ("loaded-server", "--clients 2"),
        ("memcached", "--value-bytes 100"),
        ("ntp", "--rate 200"),
        ("mixed", "--bulk-rate 50"),
    ] {
        let result = result(&format!("{experiment} --duration 0.05 {more}"));
        assert!(number(&result, "transactions_per_s") > 50.0, "{experiment}: {result}");
        assert!(number(&result["latency_us"], "min") > 40.0, "no faster than the wire: {result}");
        // The last request may still be on its way.
        assert!(number(&result, "lost") <= 2.0, "{experiment}: {result}");
    }
}

#[test]
fn floods_fill_the_cable_and_no_more() {
    needs!("guests");
    // A frame of 1514 bytes takes 1538 on the wire and carries 1448.
    let bits = number(&result("bulk --warmup 0.05 --duration 0.05"), "bulk_bits_per_s");
    let most = 1e9 * 1448.0 / 1538.0;
    assert!((most * 0.98..=most * 1.001).contains(&bits), "{bits} of {most} bit/s");
    // The shortest frame takes 84 bytes.
    let datagrams = number(&result("pps --duration 0.01"), "datagrams_per_s");
    let most = 1e9 / (84.0 * 8.0);
    assert!((most * 0.98..=most * 1.001).contains(&datagrams), "{datagrams} of {most} 1/s");
    let dropped = result("invalid-frames --duration 0.05 --rate 2000");
    assert!((1_900.0..2_100.0).contains(&number(&dropped, "interrupts_per_s")), "{dropped}");
}

#[test]
fn interrupts_under_way_lengthen_the_round_trip_by_both() {
    needs!("guests");
    let with = |setting, latency| {
        let more = format!("--strategy {setting} --interrupt-latency {latency}");
        let result = result(&format!("tcp-rr --duration 0.05 {more}"));
        assert_eq!(result["environment"]["interrupt_latency_us"].to_string(), latency);
        // The first round trip and the last are in part outside of the 50 ms, and the kernel sends
        // frames of its own.
        let more =
            number(&result, "interrupts_per_s") - 2.0 * number(&result, "transactions_per_s");
        assert!(more.abs() <= 4.0 / 0.05, "{result}");
        // Not the mean: now and then a frame of the kernel's own shares an interrupt with one of
        // the round trip, which then is short.
        number(&result["latency_us"], "p50")
    };
    // A look at the clock takes 0.256 us.
    let near = |one: f64, other: f64| (one - other).abs() <= 0.257;
    let at_once = with("disabled", "0");
    for latency in ["1", "25", "400"] {
        let round_trip = with("disabled", latency);
        let both = 2.0 * latency.parse::<f64>().unwrap();
        assert!(near(round_trip, at_once + both), "{round_trip} with {latency}, {at_once} without");
    }
    // The gap between two interrupts has room for it, or has not.
    assert!(near(with("throttle:125", "25"), 125.0));
    assert!(near(with("throttle:125", "50"), at_once + 100.0));
}

/// A histogram of three digits says 74.976.
#[test]
fn a_hold_of_75_us_is_75_us() {
    needs!("guests");
    let delayed = result("udp-rr --duration 0.05 --strategy delay:75");
    for hold in [&delayed["hold_us"], &delayed["ports"][1]["hold_us"]] {
        assert_eq!((number(hold, "p50"), number(hold, "max")), (75.0, 75.0), "{delayed}");
        assert_eq!(hold["exact"], true);
    }
    assert_eq!(delayed["latency_us"]["exact"], true);
    // The clock of a guest ticks every 256 ns.
    let ticks = number(&delayed["latency_us"], "p50") / 0.256;
    assert!((ticks - ticks.round()).abs() < 1e-6, "{delayed}");
}

/// An answer that is held until after the end is no answer; what the other setting has is kept.
#[test]
fn a_setting_under_which_nothing_comes_back_costs_the_others_nothing() {
    needs!("guests");
    let always = "bench udp-rr --world virtual --warmup 0.01 --duration 0.05";
    let compare = format!("{always} --compare disabled,delay:300000 --rounds 2");
    let ended = run_line(&format!("{compare} --json"));
    let results = &ended.json()["results"];
    assert!(number(&results[0], "transactions_per_s") > 1_000.0, "{results}");
    for figure in ["latency_us", "interrupts_per_s", "packets"] {
        assert_eq!(results[1][figure], Value::Null, "{figure}");
    }
    for round in results[1]["rounds"].as_array().unwrap() {
        let why = round["not_measured"].as_str().unwrap();
        assert!(why.contains("no request was answered in 0.05 s: no frame was lost"), "{why}");
    }
    run_line(&compare).says(&["Not measured: delay:300000, round 2 of 2: no request"]);
    run_line(&format!("{always} --strategy delay:300000")).refused(&["no request was"]);
}

/// Every strategy, and each with `frames:1`, under which no packet waits whatever the timer is. A
/// world refuses a round in which something else was in force, as after a guest's own command.
#[test]
fn a_figure_has_the_name_of_what_was_in_force() {
    needs!("guests", "lab");
    let strategies = ["disabled", "delay:50", "throttle:900", "periodic:900", "quiet:50/60"];
    let followers = ["itr:3", "adaptive", "marked:50", "stream:50"];
    let settings = [&strategies[..], &followers].concat();
    let prompt = settings[1..].iter().map(|setting| format!("{setting}+frames:1"));
    let all: Vec<String> = settings.iter().map(ToString::to_string).chain(prompt).collect();
    let always = ["--warmup", "0.01", "--duration", "0.05", "--mark", "mx", "--json"];
    for world in ["virtual", "live"] {
        let compare = ["bench", "udp-rr", "--world", world, "--compare", &all.join(",")];
        let outcome = run(&[&compare[..], &always].concat()).json();
        let results = outcome["results"].as_array().unwrap();
        let named = results.iter().map(|result| result["setting"].as_str().unwrap());
        assert!(named.eq(all.iter().map(String::as_str)), "{outcome}");
        if world == "virtual" {
            let means: Vec<f64> =
                results.iter().map(|result| number(&result["latency_us"], "mean")).collect();
            let (waiting, prompt) = means[1..].split_at(settings.len() - 1);
            assert!(waiting.iter().all(|mean| *mean > means[0] + 5.0), "{means:?}");
            assert!(prompt.iter().all(|mean| *mean == means[0]), "{means:?}");
        }
    }
}

/// Requests at a multiple of the period meet the tick in one phase, and it is the seed's.
#[test]
fn the_seed_says_where_ticks_stand() {
    needs!("guests");
    let hold = |seed: &str| {
        let more = format!("--ports b --strategy periodic:125 --rate 1000 --seed {seed}");
        number(&result(&format!("udp-rr --duration 0.05 {more}"))["hold_us"], "max")
    };
    let first = hold("1");
    assert_eq!(first, hold("1"));
    assert!([first, hold("2"), hold("3")].iter().all(|hold| *hold <= 125.0));
    assert!(first != hold("2") || first != hold("3"), "{first} us whatever the seed");
}

/// Whatever is written at once by two programs, no line gets into another.
#[test]
fn lines_of_two_programs_stay_whole() {
    needs!("guests");
    let count = |name| format!("seq -f '{name} %06g' 20000; printf 'rest of {name}'");
    let (a, b) = (count("a"), count("b"));
    let ended = run(&["lab", "run", "--time", "virtual", "--on", "a", &a, "--on", "b", &b]);
    let out = ended.output();
    for name in ["a", "b"] {
        let of_one = |line: &&str| line.starts_with(&format!("{name} ")) && line.len() == 8;
        assert_eq!(out.lines().filter(of_one).count(), 20_000);
    }
    assert!(out.ends_with("rest of arest of b"), "{}", &out[out.len() - 100..]);
}
