//! What a NIC shows without hosts: the same strategies on a made-up schedule, in made-up time,
//! exact to the nanosecond.
//!
//! One second of the demo's third traffic: 1000 requests and 300 Mbit/s of bulk in bursts of 64
//! KiB, at a port whose host polls at once. There are no programs here, so there is no round trip;
//! there are holds and interrupts.

use anyhow::Result;
use base::distribution::Distribution;
use base::time::{Duration, Instant};
use base::times::Times;
use nic::marker::Rules;
use nic::moderation::Moderation;
use nic::observer::{Delivered, Observer};
use nic::port::{Port, PortSettings};

use super::STRATEGIES;
use bench::world::setup::USUAL_RULES;
use report::terminal::Table;

/// Payload of a full TCP segment.
const SEGMENT: usize = 1_448;

/// Bytes of a bulk write, and how often 300 Mbit/s takes one, in microseconds.
const BURST: usize = 65_536;
const BURST_EVERY_US: u64 = 1_748;

/// Time between two segments of a burst: those of a 10 Gbit/s link.
const SEGMENT_EVERY: Duration = Duration::from_nanos(1_230);

/// Time between two requests.
const REQUEST_EVERY_US: u64 = 1_000;

/// How long the picture is, in microseconds.
const SECOND_US: u64 = 1_000_000;

/// Packets that a host takes in one poll.
const BUDGET: usize = 64;

/// A frame with TCP in it; only its headers matter.
fn segment(payload: usize, pushed: bool) -> Vec<u8> {
    const HEADERS: usize = 14 + 20 + 20;
    let mut frame = vec![0; HEADERS + payload];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&((40 + payload) as u16).to_be_bytes());
    frame[23] = 6;
    frame[14 + 20 + 12] = 0x50;
    frame[14 + 20 + 13] = if pushed { 0x18 } else { 0x10 };
    frame
}

/// Arrivals in the order of their time.
fn schedule() -> Vec<(Instant, Vec<u8>)> {
    let mut arrivals: Vec<(Instant, Vec<u8>)> = (0..SECOND_US / REQUEST_EVERY_US)
        .map(|n| (Instant::from_micros(n * REQUEST_EVERY_US), segment(1, true)))
        .collect();
    for burst in 0..SECOND_US / BURST_EVERY_US {
        let (mut at, mut left) = (Instant::from_micros(burst * BURST_EVERY_US + 300), BURST);
        while left > 0 {
            let payload = left.min(SEGMENT);
            left -= payload;
            arrivals.push((at, segment(payload, left == 0)));
            at += SEGMENT_EVERY;
        }
    }
    arrivals.sort_by_key(|(at, _)| *at);
    arrivals
}

/// Holds of requests.
struct Requests(Times);

impl Observer for Requests {
    fn delivered(&mut self, delivered: &Delivered) {
        if delivered.descriptor.length < 64 {
            self.0.record(delivered.hold.as_nanos());
        }
    }
}

/// What one strategy does with the schedule: holds of requests, interrupts, packets.
fn play(moderation: Moderation, rules: &Rules) -> (Distribution, u64, u64) {
    let settings = PortSettings { moderation, rules: rules.clone(), ..PortSettings::default() };
    let mut port = Port::new(settings, Instant::ZERO);
    let mut requests = Requests(Times::default());
    for (at, frame) in schedule() {
        while let Some(deadline) = port.deadline().filter(|deadline| *deadline < at) {
            step(&mut port, deadline, &mut requests);
        }
        // The ring is larger than a burst, so nothing is dropped.
        let _ = port.receive(at, frame);
        step(&mut port, at, &mut requests);
    }
    // What the last timer holds back counts, too.
    while let Some(deadline) = port.deadline().filter(|_| port.queues()[0].backlog() > 0) {
        step(&mut port, deadline, &mut requests);
    }
    let counters = port.counters();
    (Distribution::of(&requests.0, 1), counters.interrupts_total(), counters.delivered)
}

/// Lets the port act, and its host poll as long as there is something.
fn step(port: &mut Port<Vec<u8>>, now: Instant, requests: &mut Requests) {
    port.advance(now, requests);
    let queue = &mut port.queues_mut()[0];
    while queue.take_interrupt() {
        while queue.poll(now, BUDGET, requests, |_, _| {}) > 0 {}
        queue.rearm(now, requests);
    }
}

/// One row for each strategy.
pub(super) fn table(rules: Option<&Rules>) -> Result<Table> {
    let usual = USUAL_RULES.parse()?;
    let rules = rules.unwrap_or(&usual);
    let mut table = Table::new([
        ("strategy", 0),
        ("request hold\np50 us", 0),
        ("request hold\nmax us", 1),
        ("interrupts/s", 0),
        ("packets/\ninterrupt", 2),
    ]);
    for strategy in STRATEGIES {
        let (holds, interrupts, packets) = play(strategy.parse()?, rules);
        let micros = |nanos: i64| format!("{:.1}", nanos as f64 / 1e3);
        table.add_row([
            strategy.to_owned(),
            micros(holds.quantile_ns(500)),
            micros(holds.max_ns),
            interrupts.to_string(),
            format!("{:.1}", packets as f64 / interrupts.max(1) as f64),
        ]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_take_the_hold_from_requests_and_few_interrupts_more() {
        let rules = USUAL_RULES.parse().unwrap();
        let of = |setting: &str| {
            let (holds, interrupts, packets) = play(setting.parse().unwrap(), &rules);
            (holds.quantile_ns(500), interrupts, packets)
        };
        let (delay, disabled, marked) = (of("delay:75"), of("disabled"), of("marked:75"));
        assert_eq!((delay.0, disabled.0, marked.0), (75_000, 0, 0));
        assert_eq!(delay.2, marked.2);
        assert!(marked.1 * 100 <= delay.1 * 110, "marked {} delay {}", marked.1, delay.1);
        assert!(disabled.1 > 10 * delay.1);
    }
}
