//! What the Open-MX paper says of marks, in virtual time: exactly, where nothing costs anything.

use crate::support::needs;
use crate::support::results::{number, results};

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
    let (settings, more) = (settings.join(","), more.join(" "));
    let words = format!("{more} --warmup 0.002 --duration 0.01 --compare {settings}");
    let figures = results(&words).into_iter().map(|result| Figures {
        half: result["half_round_trip_us"]["mean"].as_f64().unwrap_or(f64::NAN),
        interrupts: number(&result, "interrupts_per_message"),
    });
    figures.collect::<Vec<_>>().try_into().unwrap()
}

#[test]
fn small_messages_that_are_marked_are_not_held() {
    needs!("guests");
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
    needs!("guests");
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
    needs!("guests");
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
