//! Hosts that cost time in virtual time do what a line of arithmetic says.

use serde_json::Value;

use crate::support::results::{TICK_US, number, p50, result};
use crate::support::{needs, run_line};

/// What host b's processor did, in nanoseconds of a window of so many seconds.
fn busy_ns(result: &Value, what: &str, seconds: f64) -> f64 {
    number(&result["ports"][1]["processor"], what) * seconds * 1e9
}

#[test]
fn a_lone_packet_takes_the_wire_and_the_costs_and_the_hold() {
    needs!("guests");
    let udp = |more: &str| p50(&result(&format!("udp-rr --duration 0.05 {more}")));
    let free = udp("-s disabled");
    for (costs, on_both_sides) in [
        ("--interrupt-cost 3000", 6.0),
        ("--packet-cost 3000", 6.0),
        ("--send-cost 3000", 6.0),
        ("--interrupt-cost 191 --packet-cost 774 --send-cost 500", 2.0 * 1.465),
        // Another round trip's interrupt was 40 us ago, so it sleeps; the other host never does.
        ("--wakeup-cost 5000,0 --idle-after 20000", 5.0),
    ] {
        let seen = udp(&format!("-s disabled {costs}"));
        assert!((seen - free - on_both_sides).abs() <= TICK_US, "{costs}: {seen}, free {free}");
    }
    // A timer of 75 us runs from the packet to the interrupt, on each side; then it costs.
    let seen = udp("-s delay:75 --interrupt-cost 1000");
    assert!((seen - free - 2.0 * 76.0).abs() <= TICK_US, "{seen}, free {free}");
}

#[test]
fn load_is_what_was_counted_times_what_it_costs() {
    needs!("guests");
    for setting in ["disabled", "delay:75", "marked:75", "throttle:125", "delay:75+frames:8"] {
        let words = "mixed --duration 0.02 --bulk-rate 400 --costs paper --send-cost 300";
        let result = result(&format!("{words} -s {setting}"));
        let port = &result["ports"][1];
        let interrupts: f64 =
            port["interrupts"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
        // What began before the window and ended in it counts in part, as does what ends after it:
        // a poll of 64 packets at most.
        let poll = 64.0 * 774.0 + 191.0;
        for (what, expected) in
            [("interrupt", interrupts * 191.0), ("receive", number(port, "packets") * 774.0)]
        {
            let seen = busy_ns(&result, what, 0.02);
            assert!((seen - expected).abs() <= poll, "{setting}: {what} {seen} ns, {expected}");
        }
        let idle = number(&port["processor"], "idle");
        let all = ["wakeup", "interrupt", "receive", "send", "work"];
        let all: f64 = all.iter().map(|what| number(&port["processor"], what)).sum();
        assert!((idle + all - 1.0).abs() < 1e-9, "{port}");
    }
}

/// Packets that come while the host is busy belong to the same poll: under load there are fewer
/// interrupts than packets, and what a host can take is one packet each time that it costs.
#[test]
fn a_saturated_host_takes_a_packet_in_the_time_of_one() {
    needs!("guests");
    for setting in ["disabled", "throttle:125"] {
        let flood = "pps --duration 0.02 --rate 200000 --packet-cost 20000 --interrupt-cost 2000";
        let result = result(&format!("{flood} -s {setting}"));
        let port = &result["ports"][1];
        let each_s = number(port, "packets") / 0.02;
        assert!((each_s - 50_000.0).abs() <= 64.0 / 0.02, "{setting}: {each_s}/s");
        assert!(number(port, "ring_full") > 1_000.0, "{setting}: three of four find no room");
        let processor = &port["processor"];
        assert!(number(processor, "idle") < 0.001, "{setting}: {processor}");
        assert!(number(processor, "receive") > 0.98, "{setting}: {processor}");
    }
}

#[test]
fn interrupts_lengthen_the_work_of_a_server() {
    needs!("guests");
    let serve = |more: &str| result(&format!("loaded-server --duration 0.05 -s disabled {more}"));
    // Work is asked for by a frame of its own, so what is free is compared with a cost of next to
    // nothing.
    let alone = p50(&serve("--compute 200 --interrupt-cost 0,1"));
    let paid = p50(&serve("--compute 200 --interrupt-cost 0,10000"));
    assert!((paid - alone - 10.0).abs() <= TICK_US, "{paid}, {alone} without costs");
    // Three clients: while one request is worked on, the others' interrupts cost the server time.
    let three = serve("--compute 200 --clients 3 --interrupt-cost 0,10000");
    let work = number(&three["ports"][1]["processor"], "work");
    assert!(number(&three["ports"][1]["processor"], "idle") < 0.05, "{three}");
    let each_s = number(&three, "transactions_per_s");
    assert!((each_s * 200e-6 - work).abs() < 0.01, "{each_s} a second, {work} at work");
    assert!(each_s < 1e6 / 205.0, "interrupts take their part: {each_s}");
}

/// Receive livelock: requests that come more often take the time in which they would be answered,
/// until none is.
#[test]
fn a_host_that_only_receives_answers_no_request() {
    needs!("guests");
    let ask = |rate: u32| {
        let words = "udp-rr --duration 0.05 -s disabled --compute 5 --packet-cost 0,5000";
        let always = "bench --world virtual --json --warmup 0.05";
        run_line(&format!("{always} {words} --rate {rate}"))
    };
    let mut before = f64::INFINITY;
    for rate in [120_000, 150_000, 198_000] {
        let result = ask(rate).json()["results"][0].clone();
        let processor = &result["ports"][1]["processor"];
        let received = f64::from(rate) * 5e-6;
        assert!((number(processor, "receive") - received).abs() < 0.01, "{rate}: {processor}");
        // What is left is for answers, 5 us each.
        let answers = number(&result, "transactions_per_s");
        assert!(answers <= (1.0 - received + 0.01) / 5e-6, "{rate}: {answers}");
        assert!(answers < before, "{rate}: {answers} answers after {before}");
        before = answers;
    }
    assert!(before < 5_000.0, "198,000 requests a second leave time for 2,000: {before}");
    ask(250_000).refused(&["no request was answered", "found a full ring"]);
}
