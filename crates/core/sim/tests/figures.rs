//! How fast the protocol is, on links that lose nothing, on links that lose, and where many send to
//! one. Figures are exact: the same code gives the same ones everywhere.

use base::time::Duration;
use mx::config::{Config, Marks};
use sim::load::{self, Load, Outcome};
use sim::network::Wires;

/// 10 Gbit/s, 20 us from host to host, 128 frames of queue at each port of the switch.
fn wires() -> Wires {
    Wires { rate_mbit: 10_000, latency: Duration::from_micros(20), queue: 128, ..Wires::default() }
}

fn one_way(size: usize, depth: usize) -> Load {
    Load {
        config: Config::default(),
        wires: wires(),
        pairs: vec![(0, 1)],
        size,
        depth,
        every: None,
        warm_up: Duration::from_millis(10),
        span: Duration::from_millis(50),
        seed: 1,
    }
}

/// A part in a hundred of the frames is lost, in either direction.
fn lossy(load: Load) -> Load {
    let span = Duration::from_millis(300);
    Load { wires: Wires { loss_ppm: 10_000, ..load.wires }, span, ..load }
}

/// So many hosts send to one.
fn incast(senders: usize, load: &Load) -> Load {
    let pairs = (1..=senders).map(|from| (from, 0)).collect();
    // Long messages are counted when they end: there have to be many.
    let (warm_up, span) = (Duration::from_millis(50), Duration::from_millis(250));
    Load { pairs, warm_up, span, ..load.clone() }
}

/// What the cable can carry of messages in full frames: 1538 bytes on the wire have 1468 of them.
const PAYLOAD_MBIT: u64 = 10_000 * 1468 / 1538;

/// The same with other accidents.
fn seeds(load: &Load) -> impl Iterator<Item = Load> {
    (1..=2).map(|seed| Load { seed, ..load.clone() })
}

fn show(name: &str, outcome: &Outcome) -> u64 {
    let Outcome { frames, again, overflowed, messages, unmarked, .. } = outcome;
    assert_eq!(*unmarked, 0, "{name}: hosts wait for frames without a mark");
    let (least, most) = (messages.iter().min().unwrap(), messages.iter().max().unwrap());
    println!(
        "{name}: {} Mbit/s ({} %), p50 {}, p99.9 {}, {frames} frames, {again} again, \
         {overflowed} overflowed, {least} to {most} messages of each",
        outcome.mbit(),
        outcome.mbit() * 100 / PAYLOAD_MBIT,
        outcome.permille(500),
        outcome.permille(999),
    );
    outcome.mbit()
}

#[test]
fn a_link_without_loss_is_filled() {
    for (size, depth) in [(1 << 20, 1), (1 << 20, 4), (32 << 10, 8), (8 << 10, 8)] {
        let mbit = show(&format!("{size} x {depth}"), &load::run(&one_way(size, depth)));
        assert!(mbit * 100 >= PAYLOAD_MBIT * 90, "{size} x {depth}: {mbit} Mbit/s");
    }
}

#[test]
fn a_hundredth_lost_costs_less_than_half() {
    for size in [64 << 10, 8 << 10] {
        let load = one_way(size, 8);
        let whole = show(&format!("{size}, no loss"), &load::run(&load));
        for load in seeds(&lossy(load)) {
            let mbit = show(&format!("{size}, 1 % loss"), &load::run(&load));
            assert!(mbit * 2 >= whole, "{size}: {mbit} of {whole} Mbit/s");
        }
    }
}

#[test]
fn small_messages_are_late_for_a_moment_only() {
    for (every, span) in [(20, 1_000), (1_000, 10_000)] {
        let every = Some(Duration::from_micros(every));
        let load = lossy(Load { every, depth: 1, ..one_way(64, 1) });
        for load in seeds(&Load { span: Duration::from_millis(span), ..load }) {
            let outcome = load::run(&load);
            show("64, now and then", &outcome);
            assert!(outcome.permille(999) < Duration::from_millis(5));
        }
    }
}

#[test]
fn many_senders_share_a_port() {
    for (size, depth) in [(1 << 20, 1), (16 << 10, 4)] {
        for senders in [2, 8, 32] {
            let load = incast(senders, &one_way(size, depth));
            let outcome = load::run(&load);
            let mbit = show(&format!("{senders} senders, {size}"), &outcome);
            assert!(mbit * 100 >= PAYLOAD_MBIT * 80, "{senders} x {size}: {mbit} Mbit/s");
            // None of them starves.
            assert!(outcome.messages.iter().all(|messages| *messages > 0));
            // Most of what the port sends is sent once.
            assert!(outcome.overflowed * 10 < outcome.frames, "{} overflowed", outcome.overflowed);
        }
    }
}

#[test]
fn marks_change_nothing_but_marks() {
    for size in [64, 8 << 10, 64 << 10] {
        let load = lossy(one_way(size, 8));
        let load = Load { span: Duration::from_millis(20), ..load };
        let all = load::run(&load);
        assert!(all.marked > 0);
        for (name, mark) in Marks::NAMES {
            let config = Config { marks: Marks::ALL.without(mark), ..load.config };
            let outcome = load::run(&Load { config, ..load.clone() });
            assert!(outcome.marked <= all.marked, "{name}");
            let facts = |outcome: &Outcome| (outcome.bytes, outcome.frames, outcome.hash);
            assert_eq!(facts(&outcome), facts(&all), "without {name}");
        }
    }
}

/// A sender that is faster than the cable has a queue, whose frames leave in bursts.
#[test]
fn a_stream_has_a_mark_for_each_burst() {
    for (size, messages) in [(128, 10), (1_024, 10), (4_096, 5)] {
        let outcome = load::run(&one_way(size, 64));
        show(&format!("{size} x 64"), &outcome);
        let received = outcome.messages[0];
        println!("{} marks for {received} messages", outcome.marked);
        assert!(outcome.marked * messages <= received, "{} of {received}", outcome.marked);
        // One at a time is what a host waits for.
        let outcome = load::run(&one_way(size, 1));
        assert!(outcome.marked >= outcome.messages[0]);
    }
}

#[test]
fn figures_are_the_same_each_time() {
    let load = lossy(one_way(8 << 10, 8));
    assert_eq!(load::run(&load).hash, load::run(&load).hash);
}

#[test]
fn both_ways_at_once_is_as_fast() {
    for size in [64 << 10, 8 << 10] {
        let load = Load { pairs: vec![(0, 1), (1, 0)], ..one_way(size, 8) };
        let whole = show(&format!("{size} both ways"), &load::run(&load));
        assert!(whole * 100 >= 2 * PAYLOAD_MBIT * 85, "{size}: {whole} Mbit/s");
        let load = lossy(load);
        let load = Load { span: Duration::from_millis(100), ..load };
        let outcome = load::run(&load);
        let mbit = show(&format!("{size} both ways, 1 % loss"), &outcome);
        assert!(mbit * 2 >= whole, "{size}: {mbit} of {whole} Mbit/s");
        // What one sends must not keep it from telling what it has missed.
        assert!(outcome.messages[0].abs_diff(outcome.messages[1]) * 4 < outcome.messages[0]);
    }
}
