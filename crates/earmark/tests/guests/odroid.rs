//! The clock of the Odroid C2: real chronyd in three guests, in virtual time: two clients, and a
//! server whose NIC holds what it receives for 393 us, and from second 48 on for 50.

use std::collections::BTreeMap;

use crate::support::{lab_run, needs};

/// When the server's own `ethtool -C` changes its setting, in seconds since 1 January 2026.
const CHANGE_AT_S: f64 = 48.0;

/// The hosts that ask.
const CLIENTS: [&str; 2] = ["a", "c"];

/// How long they ask.
const CLIENTS_FOR_S: u32 = 99;

/// Polls a second: `minpoll -2`.
const POLLS_PER_S: f64 = 4.0;

/// What a client has found out by one exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// When, in seconds.
    at_s: f64,
    /// What chronyd computes: by how much the server's clock is ahead, in microseconds.
    offset_us: f64,
    /// There and back, in microseconds.
    round_trip_us: f64,
}

impl Sample {
    /// From client to server. Both read one clock, so this is what it took.
    fn request_us(&self) -> f64 {
        self.round_trip_us / 2.0 + self.offset_us
    }

    /// From server to client.
    fn response_us(&self) -> f64 {
        self.round_trip_us / 2.0 - self.offset_us
    }
}

/// What chronyd has measured on each client.
fn measure() -> BTreeMap<String, Vec<Sample>> {
    let server = "printf 'allow all\\nlocal stratum 1\\n' > /tmp/conf
        printf 'cmdport 0\\nbindcmdaddress /\\npidfile /tmp/pid\\n' >> /tmp/conf
        ethtool -C b0 rx-usecs 393
        chronyd -u root -x -d -f /tmp/conf 2> /tmp/log &
        sleep 47
        ethtool -C b0 rx-usecs 50
        exec sleep 55";
    let [a, c] = CLIENTS.map(|name| {
        // A server that is selected would have its offset taken off the samples to come.
        format!(
            "printf 'server 10.9.0.2 minpoll -2 maxpoll -2 noselect\\n' > /tmp/conf
            printf 'cmdport 0\\nbindcmdaddress /\\npidfile /tmp/pid\\n' >> /tmp/conf
            printf 'logdir /tmp\\nlog rawmeasurements\\n' >> /tmp/conf
            timeout {CLIENTS_FOR_S} chronyd -u root -x -d -f /tmp/conf 2> /tmp/log
            grep ' 10.9.0.2 ' /tmp/measurements.log | sed 's/^/{name} /' | grep . || cat /tmp/log"
        )
    });
    let options = ["--time", "virtual", "--until", "all", "--strategy", "disabled"];
    let hosts = ["--on", "b", server, "--on", CLIENTS[0], &a, "--on", CLIENTS[1], &c];
    let ended = lab_run(&[&options[..], &hosts].concat());
    let mut samples: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    for line in ended.output().lines() {
        let (client, mut sample) =
            sample(line).unwrap_or_else(|| panic!("no measurement of chronyd's: `{line}`"));
        let client = samples.entry(client).or_default();
        // The log has whole seconds.
        let same = client.iter().rev().take_while(|before| before.at_s >= sample.at_s).count();
        sample.at_s += same as f64 / POLLS_PER_S;
        client.push(sample);
    }
    samples
}

/// A line of a client's log: its name, date, time, address, nine columns of flags and scores,
/// offset, delay.
fn sample(line: &str) -> Option<(String, Sample)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let us = |at: usize| Some(words.get(at)?.parse::<f64>().ok()? * 1e6);
    let at_s = words.get(2)?.split(':').try_fold(0.0, |sum, part| {
        let part: f64 = part.parse().ok()?;
        Some(sum * 60.0 + part)
    })?;
    let sample = Sample { at_s, offset_us: us(12)?, round_trip_us: us(13)? };
    Some(((*words.first()?).to_owned(), sample))
}

/// The median of a figure before the change, and after it.
fn medians(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> [f64; 2] {
    let median = |wanted: &dyn Fn(f64) -> bool| {
        let mut values: Vec<f64> =
            samples.iter().filter(|sample| wanted(sample.at_s)).map(&figure).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    // The exchange that meets the change belongs to neither side.
    [median(&|at| at < CHANGE_AT_S - 1.0), median(&|at| at > CHANGE_AT_S + 1.0)]
}

/// "The configuration change only affected the two request latencies"; the clocks did not move, and
/// yet the offset did, by half of it.
#[test]
fn hold_of_the_server_moves_requests_and_half_of_it_the_offset() {
    needs!("guests", "chronyd", "ethtool");
    let clients = measure();
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
