//! The clock of the Odroid C2: real chronyd, in virtual time.

use std::process::{Command, Stdio};

mod common;
use common::{EARMARK, needs};

#[path = "../examples/odroid/chrony.rs"]
mod chrony;
use chrony::{CLIENTS, Sample, measure, medians};

/// "The configuration change only affected the two request latencies"; the clocks did not move, and
/// yet the offset did, by half of it.
#[test]
fn hold_of_the_server_moves_requests_and_half_of_it_the_offset() {
    needs("chronyd", "chrony");
    needs("ethtool", "ethtool");
    let clients = measure(Command::new(EARMARK).stdin(Stdio::null())).unwrap();
    assert!(clients.keys().eq(&CLIENTS), "{clients:?}");
    for (client, samples) in clients {
        assert!(samples.len() > 350, "{client}: {} answers in 99 seconds", samples.len());
        let moved = |figure: fn(&Sample) -> f64| {
            let [before, after] = medians(&samples, figure);
            after - before
        };
        // chronyd blurs what is below its precision, a quarter of a microsecond.
        let near = |value: f64, expected: f64| (value - expected).abs() <= 0.5;
        let request = moved(Sample::request_us);
        assert!(near(request, 50.0 - 393.0), "{client}: requests moved by {request} us");
        let response = moved(Sample::response_us);
        assert!(near(response, 0.0), "{client}: responses moved by {response} us");
        let offset = moved(|sample| sample.offset_us);
        assert!(near(offset, (50.0 - 393.0) / 2.0), "{client}: the offset moved by {offset} us");
        let [_, after] = medians(&samples, |sample| sample.round_trip_us);
        assert!((90.0..93.0).contains(&after), "{client}: the cable, and 50 us: {after} us");
    }
}
