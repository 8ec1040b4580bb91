//! The stories that Earmark was made for, in virtual time: what they tell, to the microsecond.
//!
//! Guests run Linux and its programs, and time is the calendar's, so what is left of tolerance is
//! how fine figures are: reading the clock takes a guest 256 ns.

use serde_json::Value;

use crate::support::results::{assert_near, results};
use crate::support::{needs, run, run_line};

#[track_caller]
fn latency(result: &Value, figure: &str) -> f64 {
    let value = &result["latency_us"][figure];
    value.as_f64().unwrap_or_else(|| panic!("no {figure} in {result:#}"))
}

fn per_second(result: &Value) -> f64 {
    result["transactions_per_s"].as_f64().unwrap()
}

/// "Two interrupt timer periods elapse between message receptions: one for the transmit interrupt,
/// and another for the receive interrupt."
#[test]
fn phase_decides_between_one_period_and_two() {
    needs!("guests");
    let outcomes = run_line("bench --scenario phase --json --warmup 0.02 --duration 0.1").json();
    let results: Vec<&Value> =
        outcomes["outcomes"].as_array().unwrap().iter().map(|o| &o["results"][0]).collect();
    let expected = [
        ("the answer comes before the interrupt", 125.0, 0.5),
        ("the answer comes 8 us after it", 250.0, 0.5),
        // With the looks at clocks, of which series differ by a few.
        ("the same cable, completions do not interrupt", 133.0, 0.9),
        ("both ends in step", 250.0, 0.5),
        ("both ends, completions do not interrupt", 125.0, 0.5),
    ];
    assert_eq!(results.len(), expected.len());
    for (result, (what, us, tolerance)) in results.iter().zip(expected) {
        assert_eq!(result["environment"]["world"], "virtual");
        assert_near(latency(result, "p50"), us, tolerance, what);
        assert_near(per_second(result), 1e6 / us, 1e6 / us * 0.007, what);
    }
}

/// The mean moved by 69 us from 128 to 8, and the minimum of 90 us not at all: a tick that runs
/// freely. A delay would have moved the minimum.
#[test]
fn bge_ticks_move_the_mean_and_not_the_minimum() {
    needs!("guests", "memcached");
    let memcached = "memcached --ports b --value-bytes 1000 --warmup 0.02";
    let few = "--compare disabled,periodic:8,delay:128 --duration 0.2";
    let [base, tuned, delay] = &results(&format!("{memcached} {few}"))[..] else {
        panic!("three settings")
    };
    // The mean of waits of up to 128 us takes more of them.
    let usual = &results(&format!("{memcached} --strategy periodic:128 --duration 1"))[0];
    for (result, tick) in [(usual, 128.0), (tuned, 8.0)] {
        let what = format!("a tick of {tick} us");
        assert_near(latency(result, "mean"), latency(base, "mean") + tick / 2.0, 2.0, &what);
        assert_near(latency(result, "min"), latency(base, "min"), 1.0, &what);
    }
    assert_near(latency(delay, "min"), latency(base, "min") + 128.0, 0.5, "a delay of 128 us");
}

/// Round trips, each sent as soon as the last one is back, under one `ethtool -C` after the other:
/// microseconds set, and the median in nanoseconds.
const ASK: &str = r#"exec python3 -c '
import socket, statistics, subprocess, time
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.connect(("10.9.0.2", 7))
def ask():
    begin = time.monotonic_ns()
    asker.send(b"."), asker.recv(64)
    return time.monotonic_ns() - begin
for usecs in 0, 50, 125, 393, 1000:
    subprocess.run(["ethtool", "-C", "a0", "rx-usecs", str(usecs)], check=True)
    warm_up = [ask() for _ in range(5)]
    print(usecs, statistics.median(ask() for _ in range(21)))
'"#;

const ECHO: &str = r#"exec python3 -c '
import socket
echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
echo.bind(("10.9.0.2", 7))
while True: echo.sendto(*echo.recvfrom(64))
'"#;

/// What a guest sets, and the round trip in microseconds that it then has.
#[track_caller]
fn round_trips(setting: &str) -> Vec<(f64, f64)> {
    let lab = ["lab", "run", "--time", "virtual", "--ports", "a", "--strategy", setting];
    let ended = run(&[&lab[..], &["--on", "b", ECHO, "--on", "a", ASK]].concat());
    let numbers = |line: &str| -> Option<(f64, f64)> {
        let (usecs, nanos) = line.split_once(' ')?;
        Some((usecs.parse().ok()?, nanos.parse::<f64>().ok()? / 1e3))
    };
    let times: Option<Vec<_>> = ended.output().lines().map(numbers).collect();
    let times = times.unwrap_or_else(|| panic!("{ended:?}"));
    assert_eq!(times.len(), 5, "{ended:?}");
    times
}

#[test]
fn guests_ethtool_moves_the_round_trip_by_what_it_says() {
    needs!("guests", "ethtool", "python3");
    let delayed = round_trips("delay:75");
    let (_, base) = delayed[0];
    assert_near(base, 41.6, 0.3, "two ways over the cable");
    for (usecs, time) in delayed {
        assert_near(time, base + usecs, 0.3, "a delay is added");
    }
    for (usecs, time) in round_trips("throttle:75") {
        // The period, without the looks at the clock between two round trips.
        assert_near(time, usecs.max(base), 0.6, "a throttle is a least period");
    }
}

fn total(result: &Value, figure: impl Fn(&Value) -> u64) -> u64 {
    result["ports"].as_array().unwrap().iter().map(figure).sum()
}

fn interrupts(port: &Value) -> u64 {
    port["interrupts"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

/// Where the stories end: urgent round trips as fast as without moderation, beside a bulk flow with
/// as few interrupts as under the delay.
#[test]
fn marks_end_the_trade_off() {
    needs!("guests");
    let results = results(
        "mixed --mark tcp-psh&length<=512 --compare disabled,delay:75,marked:75 --warmup 0.05 \
         --duration 0.1",
    );
    let [disabled, delay, marked] = &results[..] else { panic!("three settings") };
    assert_near(latency(marked, "p50"), latency(disabled, "p50"), 1.0, "urgent round trips");
    assert_near(latency(delay, "p50"), latency(disabled, "p50") + 150.0, 2.0, "two delays");
    let marks = total(marked, |port| port["marked"].as_u64().unwrap());
    let [most, fewest, ours] = [disabled, delay, marked].map(|result| total(result, interrupts));
    assert!(marks >= 200, "100 requests and 100 answers: {marked:#}");
    assert!(ours <= fewest + marks, "{ours} interrupts, {fewest} under the delay, {marks} marks");
    assert!(most > 2 * (fewest + marks), "{most} interrupts when disabled, {ours} with marks");
}
