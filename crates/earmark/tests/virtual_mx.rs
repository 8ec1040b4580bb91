//! What the Open-MX paper says of marks, in virtual time: exactly, where nothing costs anything.

use serde_json::Value;

mod common;
use common::run;

/// A cable and a NIC as fast as the paper's: a DMA takes as long as four frames.
const MYRI_10G: [&str; 6] = ["--link-rate", "10000", "--link-latency", "3", "--dma-latency", "5"];

/// What a setting came to.
#[derive(Debug)]
struct Figures {
    /// Half a round trip, in microseconds; of a stream not a number, which compares with none.
    half: f64,
    /// Interrupts for each message.
    interrupts: f64,
}

/// The figures of each of `settings`.
#[track_caller]
fn figures<const N: usize>(settings: [&str; N], more: &[&str]) -> [Figures; N] {
    let settings = settings.join(",");
    let always = ["--world", "virtual", "--json", "--warmup", "0.002", "--duration", "0.01"];
    let arguments = [&["bench"], &always[..], &["--compare", &settings], more].concat();
    let outcome = run(&arguments).json();
    let results = outcome["results"].as_array().unwrap().iter().map(|result| Figures {
        half: result["half_round_trip_us"]["mean"].as_f64().unwrap_or(f64::NAN),
        interrupts: number(result, "interrupts_per_message"),
    });
    results.collect::<Vec<_>>().try_into().unwrap()
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

#[test]
fn small_messages_that_are_marked_are_not_held() {
    let settings = ["disabled", "delay:75", "marked:75", "stream:75"];
    let [disabled, delay, marked, stream] = figures(settings, &["mx-pingpong"]);
    for marked in [marked, stream] {
        assert!((marked.half - disabled.half).abs() < 0.1, "{marked:?}, {disabled:?}");
        assert!((marked.interrupts - 1.0).abs() < 0.01, "{marked:?}");
    }
    assert!((delay.half - disabled.half - 75.0).abs() < 0.1, "{delay:?}, {disabled:?}");
    let unmarked = ["mx-pingpong", "--mx-marks", "none"];
    let [marked] = figures(["marked:75"], &unmarked);
    assert!((marked.half - delay.half).abs() < 0.1, "{marked:?}, {delay:?}");
}

/// A stream that the cable holds back, on hosts that cost what the paper's do.
#[test]
fn a_stream_costs_as_few_interrupts_as_a_delay_and_a_lone_message_none_of_its_latency() {
    let more = ["mx-stream", "--size", "1024", "--costs", "paper"];
    let [disabled, delay, marked] = figures(["disabled", "delay:75", "marked:75"], &more);
    assert!(marked.interrupts < 1.1 * delay.interrupts, "{marked:?}, {delay:?}");
    assert!(5.0 * marked.interrupts < disabled.interrupts, "{marked:?}, {disabled:?}");
    let more = ["mx-pingpong", "--size", "1024", "--costs", "paper"];
    let [disabled, marked] = figures(["disabled", "marked:75"], &more);
    assert!((marked.half - disabled.half).abs() < 0.1, "{marked:?}, {disabled:?}");
}

/// 23 frames: the host receives the first twelve while the others are on the cable.
#[test]
fn a_mark_half_way_lets_the_host_work_beside_the_cable() {
    let with = |marks: &str| {
        let more = ["mx-pingpong", "--size", "32768", "--costs", "paper", "--mx-marks", marks];
        let more = [&more[..], &["--link-rate", "10000"]].concat();
        let [disabled, marked] = figures(["disabled", "marked:75"], &more);
        (disabled, marked)
    };
    let ((disabled, all), (_, half)) = (with("all"), with("all+halfway"));
    // All frames but the last four or so are behind it when the last one comes: 0.774 us each.
    assert!(all.half - half.half > 11.0 * 0.774, "{all:?}, {half:?}");
    // One that is interrupted for each frame is ahead by these, and by no more than as many again.
    assert!(half.half - disabled.half < 8.0 * 0.774, "{half:?}, {disabled:?}");
    assert!((half.interrupts - all.interrupts).abs() < 0.1, "one poll goes on: {half:?}, {all:?}");
}

/// Table II.
#[test]
fn large_messages_are_as_fast_as_without_moderation_and_interrupt_little() {
    let with = |marks: &str| {
        let more = [&MYRI_10G[..], &["mx-large-anatomy", "--mx-marks", marks]].concat();
        let [marked] = figures(["marked:75"], &more);
        marked
    };
    let more = [&MYRI_10G[..], &["mx-large-anatomy"]].concat();
    let [disabled, delay] = figures(["disabled", "delay:75"], &more);
    let all = with("all");
    assert!((all.half - disabled.half).abs() < 2.0, "{all:?}, {disabled:?}");
    assert!(delay.half > disabled.half + 150.0, "{delay:?}, {disabled:?}");
    assert!(disabled.interrupts > 10.0 * all.interrupts, "{disabled:?}, {all:?}");
    assert!(all.interrupts < delay.interrupts + 8.0, "{delay:?}, {all:?}");
    let worth = ["rendezvous", "pull", "reply-last", "notify", "small"]
        .map(|mark| with(&format!("all-{mark}")).half - all.half);
    let [rendezvous, pull, reply, notify, small] = worth;
    assert!((rendezvous - 75.0).abs() < 1.0, "the receiver hears of it later: {worth:?}");
    assert!(pull > 60.0 && reply > 10.0, "{worth:?}");
    assert!(notify.abs() < 1.0 && small.abs() < 0.1, "nobody waits for these: {worth:?}");
    let none = with("none");
    assert!((none.half - delay.half).abs() < 0.1, "{none:?}, {delay:?}");
}

/// Table III.
#[test]
fn a_stream_looks_behind_a_mark_that_comes_too_early() {
    let with = |early: &str, more: &[&str]| {
        figures(
            ["marked:75", "stream:75"],
            &[&["mx-misorder", "--mx-misorder", early], more].concat(),
        )
    };
    let [marked, stream] = with("0", &MYRI_10G);
    assert!((marked.half - stream.half).abs() < 0.1, "{marked:?}, {stream:?}");
    for early in ["1", "3"] {
        let [too_early, looks] = with(early, &MYRI_10G);
        assert!((looks.half - stream.half).abs() < 0.1, "{early}: {looks:?}, {stream:?}");
        let waits = too_early.half - marked.half;
        assert!((60.0..80.0).contains(&waits), "{early}: {too_early:?}, {marked:?}");
    }
    // A DMA that is over before the next frame is there leaves nothing to look at.
    let short = ["--link-rate", "10000", "--link-latency", "3", "--dma-latency", "0"];
    let [too_early, looks] = with("1", &short);
    assert!((looks.half - too_early.half).abs() < 0.1, "{looks:?}, {too_early:?}");
}

#[test]
fn each_round_trip_is_two_messages_and_a_paced_stream_keeps_its_pace() {
    let result = |more: &[&str]| {
        let always = ["bench", "--world", "virtual", "--json", "--warmup", "0.02"];
        run(&[&always[..], more].concat()).json()["results"][0].clone()
    };
    let there_and_back = result(&["mx-pingpong", "--duration", "0.05"]);
    let messages = number(&there_and_back, "messages_per_s");
    let answers = number(&there_and_back, "transactions_per_s");
    // The first round trip and the last are in part outside of the 50 ms.
    assert!((messages - 2.0 * answers).abs() <= 2.0 / 0.05, "{messages}, {answers}");
    let paced = ["mx-stream", "--duration", "0.2", "--size", "10000", "--in-flight", "8"];
    let messages = number(&result(&[&paced[..], &["--bulk-rate", "8"]].concat()), "messages_per_s");
    assert!((95.0..=105.0).contains(&messages), "8 Mbit/s are 100 messages a second: {messages}");
}

#[test]
fn streams_fill_the_cable() {
    let always = ["bench", "mx-stream", "--world", "virtual", "--json", "--warmup", "0.005"];
    let more = ["--duration", "0.01", "--size", "32768", "--strategy", "marked:75"];
    let outcome = run(&[&always[..], &more].concat()).json();
    assert_eq!(outcome["mx"]["in_flight"], 64);
    let result = &outcome["results"][0];
    let bits = 8.0 * number(result, "message_bytes_per_s");
    assert!((0.85e9..0.97e9).contains(&bits), "{bits} bit/s of 1e9");
    let interrupts = number(result, "interrupts_per_message");
    assert!(interrupts < 8.0, "{interrupts} for 23 frames, and their acknowledgements");
}

#[test]
fn urgent_messages_pass_bulk_of_both_kinds() {
    let always = ["bench", "mx-mixed", "--world", "virtual", "--json", "--warmup", "0.01"];
    let more = ["--duration", "0.05", "--bulk-chunk", "16384", "--compare", "delay:75,marked:75"];
    let outcome = run(&[&always[..], &more, &MYRI_10G].concat()).json();
    let [delay, marked] = [&outcome["results"][0], &outcome["results"][1]];
    for result in [delay, marked] {
        let bulk = number(result, "bulk_bits_per_s");
        assert!((2.8e8..3.2e8).contains(&bulk), "{bulk} bit/s of TCP");
        let bytes = number(result, "message_bytes_per_s");
        assert!((3.5e7..4.1e7).contains(&bytes), "{bytes} bytes/s of MX");
        assert_eq!(result["interrupts_per_message"], Value::Null);
    }
    let p50 = |result: &Value| number(&result["latency_us"], "p50");
    assert!(p50(delay) > p50(marked) + 100.0, "{} and {}", p50(delay), p50(marked));
}
