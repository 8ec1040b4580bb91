//! A queue against a model of it, on random sequences of operations; and the promises of
//! moderation, one test each.
//!
//! `support/model.rs` says when an interrupt is due, from the history alone. `support/harness.rs`
//! holds a queue against it: interrupts, reasons, deadlines, order, counters, after every
//! operation. The tests below that speak of a *prompt* run have an owner who keeps every deadline
//! and a host that answers at once: a promise on how long a packet waits cannot be kept without
//! them.

mod support;

use nic::moderation::{Marks, Moderation, Phase, Reason, TimerKind};
use nic::observer::Interrupted;
use nic::time::{Duration, Instant};
use proptest::prelude::*;
use support::harness::{Event, SMALL_RING};
use support::op::{SETTINGS, parse, setting};
use support::{Harness, Op};

/// Any setting of [`SETTINGS`].
fn settings() -> impl Strategy<Value = Moderation> {
    (0..SETTINGS.len()).prop_map(setting)
}

/// Where the ticks of a free-running clock stand.
fn phases() -> impl Strategy<Value = Phase> {
    prop_oneof![Just(Phase::default()), any::<u32>().prop_map(Phase)]
}

/// Anything that may happen, in any order, by a careless owner and a careless host.
fn anything() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (any::<bool>(), 0..12u8).prop_map(|(marked, dma)| Op::Arrive { marked, dma }),
        3 => (0..12u8).prop_map(Op::Wait),
        3 => (0..12u8).prop_map(Op::Run),
        4 => Just(Op::Deadline),
        4 => (0..8u8).prop_map(Op::Poll),
        3 => Just(Op::Rearm),
        1 => Just(Op::Transmit),
        1 => settings().prop_map(Op::Set),
    ];
    prop::collection::vec(op, 1..80)
}

/// What the wire and the clock do; the host answers at once.
fn traffic(marks: bool) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (any::<bool>(), 0..12u8)
            .prop_map(move |(marked, dma)| Op::Arrive { marked: marked && marks, dma }),
        3 => (0..12u8).prop_map(Op::Run),
    ];
    prop::collection::vec(op, 1..60)
}

/// A prompt run, at the end of which time goes on until everything is delivered.
fn prompt(setting: Moderation, phase: Phase, traffic: &[Op]) -> Harness {
    let mut harness = Harness::new(setting, phase, traffic.len());
    for op in traffic {
        match *op {
            Op::Run(micros) => run_promptly(&mut harness, micros),
            op => harness.apply(op).unwrap(),
        }
    }
    drain(&mut harness);
    harness
}

fn run_promptly(harness: &mut Harness, micros: u8) {
    let end = harness.now + Duration::from_micros(micros.into());
    while harness.queue.deadline().is_some_and(|deadline| deadline <= end) {
        harness.apply(Op::Deadline).unwrap();
        harness.serve_host().unwrap();
    }
    let rest = end.since(harness.now).as_micros() as u8;
    harness.apply(Op::Run(rest)).unwrap();
}

/// Keeps deadlines and serves the host until nothing is left to wait for.
fn drain(harness: &mut Harness) {
    harness.serve_host().unwrap();
    for _ in 0..100 {
        if harness.queue.deadline().is_none() {
            return;
        }
        harness.apply(Op::Deadline).unwrap();
        harness.serve_host().unwrap();
    }
    panic!("there is always one more deadline");
}

/// One packet, as it was signalled to the host.
#[derive(Clone, Copy, Debug)]
struct Signalled {
    at: Instant,
    hold: Duration,
    marked: bool,
}

/// The packets that the host took, in their order.
fn signalled(harness: &Harness) -> Vec<Signalled> {
    let deliveries = harness.trace.iter().filter_map(|event| match event {
        Event::Delivered(_, packet) => {
            let marked = packet.descriptor.marked;
            Some(Signalled { at: packet.at, hold: packet.hold, marked })
        }
        Event::Interrupted(_) => None,
    });
    deliveries.collect()
}

/// The interrupts, in their order.
fn interrupts(harness: &Harness) -> Vec<Interrupted> {
    let interrupts = harness.trace.iter().filter_map(|event| match event {
        Event::Interrupted(interrupt) => Some(*interrupt),
        Event::Delivered(..) => None,
    });
    interrupts.collect()
}

/// The longest hold that the timer of a setting allows in a prompt run.
fn longest_hold(setting: Moderation, harness: &Harness) -> Duration {
    let usecs = match setting.timer {
        // Its longest gap, at 4000 a second.
        TimerKind::Itr(_) => return Duration::from_nanos(249_856),
        // 64 interrupts make DIM's first decision: shorter runs stay with its first choice.
        TimerKind::Adaptive => harness.model.picked.unwrap().rx_usecs,
        TimerKind::Quiet => setting.rx_abs_usecs,
        _ => setting.rx_usecs,
    };
    Duration::from_micros(usecs.into())
}

proptest! {
    // PROPTEST_CASES=20000 for a longer hunt. What it finds deserves a test with a name, not a file
    // of seeds.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn queue_does_what_the_model_says(setting in settings(), phase in phases(), ops in anything()) {
        let run = Harness::run(setting, phase, &ops);
        prop_assert!(run.is_ok(), "{}", run.unwrap_err());
    }

    #[test]
    fn nothing_is_stranded_whatever_happened_before(
        setting in settings(),
        phase in phases(),
        ops in anything(),
    ) {
        let mut harness = Harness::new(setting, phase, SMALL_RING);
        for op in ops {
            harness.apply(op).unwrap();
        }
        drain(&mut harness);
        prop_assert!(harness.model.packets.is_empty(), "left: {:?}", harness.model.packets);
        prop_assert_eq!(harness.queue.counters().packets, u64::from(harness.delivered));
    }

    #[test]
    fn same_operations_give_the_same_trace(
        setting in settings(),
        phase in phases(),
        ops in anything(),
    ) {
        let first = Harness::run(setting, phase, &ops).unwrap();
        let second = Harness::run(setting, phase, &ops).unwrap();
        prop_assert_eq!(first.trace, second.trace);
    }

    #[test]
    fn no_packet_is_held_past_its_timer(
        setting in settings(),
        phase in phases(),
        traffic in traffic(true),
    ) {
        let harness = prompt(setting, phase, &traffic);
        prop_assert!(harness.model.packets.is_empty());
        let longest = longest_hold(setting, &harness);
        for Signalled { at, hold, .. } in signalled(&harness) {
            prop_assert!(hold <= longest, "{setting}: held {hold} until {at:?}");
        }
    }

    #[test]
    fn marked_packet_is_signalled_when_its_dma_completes_or_the_gap_is_over(
        setting in settings().prop_filter("marked", |s| s.marks == Marks::Immediate),
        phase in phases(),
        traffic in traffic(true),
    ) {
        let harness = prompt(setting, phase, &traffic);
        let gap = Duration::from_micros(setting.gap_usecs.into());
        let interrupts = interrupts(&harness);
        for Signalled { at, hold, marked } in signalled(&harness) {
            // A prompt host takes a packet at its interrupt; the one before began the gap.
            let before = interrupts.iter().rev().find(|interrupt| interrupt.at < at);
            let allowed = before.map_or(Instant::ZERO, |before| before.at + gap);
            let completed = Instant::from_nanos(at.as_nanos() - hold.as_nanos());
            prop_assert!(!marked || at <= completed.max(allowed), "{setting}: {hold} at {at:?}");
        }
    }

    #[test]
    fn gap_lies_before_every_interrupt_for_a_mark(
        setting in settings().prop_filter("gap", |s| s.gap_usecs > 0),
        phase in phases(),
        ops in anything(),
    ) {
        let ops: Vec<Op> = ops.into_iter().filter(|op| !matches!(op, Op::Set(_))).collect();
        let harness = Harness::run(setting, phase, &ops).unwrap();
        let gap = Duration::from_micros(setting.gap_usecs.into());
        for pair in interrupts(&harness).windows(2) {
            let for_mark = matches!(pair[1].reason, Reason::Mark | Reason::StreamEnd);
            prop_assert!(!for_mark || pair[1].at >= pair[0].at + gap, "{setting}: {pair:?}");
        }
    }

    #[test]
    fn marked_packet_is_never_later_than_under_delay(usecs in 0..12u32, traffic in traffic(true)) {
        let marked = prompt(parse(&format!("marked:{usecs}")), Phase::default(), &traffic);
        let delay = prompt(parse(&format!("delay:{usecs}")), Phase::default(), &traffic);
        let (marked, delay) = (signalled(&marked), signalled(&delay));
        prop_assert_eq!(marked.len(), delay.len());
        for (mine, theirs) in marked.iter().zip(&delay).filter(|(mine, _)| mine.marked) {
            prop_assert!(mine.at <= theirs.at, "marked: {mine:?}, delay: {theirs:?}");
        }
    }

    #[test]
    fn unmarked_traffic_sees_exactly_the_base_timer(
        setting in settings().prop_filter("marks", |s| s.marks != Marks::Ignored),
        phase in phases(),
        ops in anything(),
    ) {
        let unmarked: Vec<Op> = ops
            .into_iter()
            .filter(|op| !matches!(op, Op::Set(_)))
            .map(|op| match op {
                Op::Arrive { dma, .. } => Op::Arrive { marked: false, dma },
                op => op,
            })
            .collect();
        let base = Moderation { marks: Marks::Ignored, gap_usecs: 0, ..setting };
        let trace = |setting| Harness::run(setting, phase, &unmarked).unwrap().trace;
        prop_assert_eq!(trace(setting), trace(base));
    }

    #[test]
    fn changed_setting_holds_nothing_longer_than_it_says(
        before in settings(),
        after in settings(),
        phase in phases(),
        ops in anything(),
    ) {
        let mut harness = Harness::new(before, phase, SMALL_RING);
        for op in ops {
            harness.apply(op).unwrap();
        }
        harness.serve_host().unwrap();
        let changed_at = harness.now;
        let pending: Vec<Instant> =
            harness.model.packets.iter().filter_map(|packet| packet.completed).collect();
        let signalled_at = harness.model.interrupted_at;
        harness.trace.clear();
        harness.apply(Op::Set(after)).unwrap();
        drain(&mut harness);
        let longest = longest_hold(after, &harness);
        for (completed, Signalled { at, .. }) in pending.into_iter().zip(signalled(&harness)) {
            // To a host that re-armed without taking a packet, it had been signalled, and the gap
            // of a throttle counts from there.
            let since = match (after.timer, signalled_at) {
                (TimerKind::Throttle | TimerKind::Itr(_), Some(at)) => completed.max(at),
                _ => completed,
            };
            let bound = (since + longest).max(changed_at);
            prop_assert!(at <= bound, "{before} -> {after}: {at:?}");
        }
    }
}

/// Algorithm 2 may signal a marked packet later than plain coalescing would have: an earlier mark
/// has signalled the packet whose timer would have run out first. What it promises is its timer.
#[test]
fn stream_may_be_later_than_delay_but_not_than_its_timer() {
    let arrive = |marked, dma| Op::Arrive { marked, dma };
    let traffic = [
        arrive(false, 0),
        Op::Run(2),
        arrive(true, 0),
        Op::Run(1),
        arrive(true, 0),
        arrive(false, 60),
        Op::Run(80),
    ];
    let last_mark = |setting| {
        let harness = prompt(parse(setting), Phase::default(), &traffic);
        signalled(&harness)[2]
    };
    let micros = |at: Instant| at.since(Instant::from_micros(100)).as_micros();
    assert_eq!(micros(last_mark("delay:7").at), 7);
    assert_eq!(micros(last_mark("stream:7").at), 10);
    assert_eq!(last_mark("stream:7").hold, Duration::from_micros(7));
}

/// What a gap is for: one interrupt serves many marks of a stream, and a mark after a silence waits
/// for nothing.
#[test]
fn gap_spares_interrupts_in_a_stream_and_costs_a_ping_pong_nothing() {
    let marks = |count: usize, every: u8| -> Vec<Op> {
        (0..count).flat_map(|_| [Op::Arrive { marked: true, dma: 0 }, Op::Run(every)]).collect()
    };
    let (stream, ping_pong) = (marks(100, 2), marks(10, 25));
    for (setting, in_stream) in [("marked:75", 100), ("marked:75+gap:20", 11)] {
        let run = |traffic: &[Op]| prompt(parse(setting), Phase::default(), traffic);
        assert_eq!(interrupts(&run(&stream)).len(), in_stream, "{setting}");
        let taken = signalled(&run(&ping_pong));
        assert!(taken.iter().all(|packet| packet.hold == Duration::ZERO), "{setting}: {taken:?}");
    }
}
