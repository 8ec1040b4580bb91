//! Every interleaving of a few packets with a host and a clock, for every strategy.
//!
//! Depth first over cloned state: at each step the next frame may arrive, time may pass (to the
//! deadline, or by a microsecond, which makes the owner of the deadline late or early), the host
//! may poll one packet or all, and may re-arm, each whenever it pleases. The harness compares queue
//! and model after every step; in particular, no re-arm may swallow the interrupt of a packet that
//! slipped in after the last poll. Every path ends with a host and an owner who do their duty, and
//! then nothing may be left.

mod support;

use nic::moderation::{Moderation, Phase, TimerKind};
use support::op::parse;
use support::{Harness, Op};

/// How much may happen on one path.
#[derive(Clone, Copy)]
struct Budget {
    /// The frames still to arrive, in this order: marked or not, microseconds of DMA.
    frames: &'static [(bool, u8)],
    /// Microseconds that may pass besides the way to deadlines.
    ticks: u8,
    /// Polls and re-arms while the interrupt is armed: a host that does not wait for interrupts.
    unasked: u8,
    /// Completions of transmissions.
    transmissions: u8,
}

/// What was explored.
#[derive(Debug, Default)]
struct Explored {
    interleavings: u64,
    steps: u64,
    /// Re-arms that found a due packet and interrupted again: the race was run.
    raced: u64,
}

struct Explorer {
    setting: Moderation,
    path: Vec<Op>,
    explored: Explored,
}

impl Explorer {
    fn explore(setting: Moderation, phase: Phase, budget: Budget) -> Explored {
        let mut explorer = Self { setting, path: Vec::new(), explored: Explored::default() };
        explorer.descend(&Harness::forgetful(setting, phase), budget);
        explorer.explored
    }

    fn descend(&mut self, state: &Harness, budget: Budget) {
        let mut leaf = true;
        for (op, left) in choices(state, budget) {
            leaf = false;
            self.path.push(op);
            self.explored.steps += 1;
            let mut next = state.clone();
            self.check(next.apply(op));
            self.explored.raced += u64::from(op == Op::Rearm && next.queue.is_masked());
            self.descend(&next, left);
            self.path.pop();
        }
        if leaf {
            self.explored.interleavings += 1;
            self.check(finish(state.clone()));
        }
    }

    fn check(&self, result: Result<(), String>) {
        if let Err(difference) = result {
            panic!("{}, {:?}: {difference}", self.setting, self.path);
        }
    }
}

/// All that may happen next, each with what may happen after it.
fn choices(state: &Harness, budget: Budget) -> Vec<(Op, Budget)> {
    let mut choices = Vec::new();
    if let Some((&(marked, dma), frames)) = budget.frames.split_first() {
        choices.push((Op::Arrive { marked, dma }, Budget { frames, ..budget }));
    }
    if state.queue.deadline().is_some() {
        choices.push((Op::Deadline, budget));
    }
    if budget.ticks > 0 {
        choices.push((Op::Wait(1), Budget { ticks: budget.ticks - 1, ..budget }));
    }
    if budget.transmissions > 0 {
        let transmissions = budget.transmissions - 1;
        choices.push((Op::Transmit, Budget { transmissions, ..budget }));
    }
    let masked = state.queue.is_masked();
    if masked || budget.unasked > 0 {
        let left = Budget { unasked: budget.unasked - u8::from(!masked), ..budget };
        let transmitted = state.model.transmitted_at.is_some();
        match state.queue.backlog() {
            0 if !transmitted => {}
            0 | 1 => choices.push((Op::Poll(64), left)),
            _ => choices.extend([(Op::Poll(1), left), (Op::Poll(64), left)]),
        }
        // Re-arming over and over with a packet that is due would go on for ever: such a host polls
        // in between.
        let anything = state.queue.backlog() > 0 || transmitted;
        if !anything || !masked || state.polled_since_interrupt {
            choices.push((Op::Rearm, left));
        }
    }
    choices
}

/// From here on everyone does their duty: nothing may be left.
fn finish(mut state: Harness) -> Result<(), String> {
    for _ in 0..20 {
        state.serve_host()?;
        if state.queue.deadline().is_none() {
            break;
        }
        state.apply(Op::Deadline)?;
    }
    if state.model.packets.is_empty() && state.model.transmitted_at.is_none() {
        return Ok(());
    }
    Err(format!("stranded: {:?}", state.model))
}

/// Every timer, with every use of marks, with and without frames. The numbers are short, so that
/// they interleave with DMAs and with each other.
fn strategies() -> Vec<Moderation> {
    let mut strategies = vec![parse("disabled")];
    for timer in ["delay:2", "throttle:3", "periodic:2", "quiet:1/2", "itr:1", "adaptive"] {
        for marks in ["", "marked+", "stream+"] {
            for rest in ["", "+frames:2"] {
                strategies.push(parse(&format!("{marks}{timer}{rest}")));
            }
        }
        for marks in ["marked+", "stream+"] {
            strategies.push(parse(&format!("{marks}{timer}+gap:2")));
        }
    }
    strategies
}

fn explore(cases: &[&'static [(bool, u8)]], budget: Budget) -> Explored {
    let mut sum = Explored::default();
    for setting in strategies() {
        // The microseconds that pass meet a tick of 2 us at its beginning and in its middle.
        let half = Some(Phase(1 << 31)).filter(|_| setting.timer == TimerKind::Periodic);
        for phase in [Some(Phase::default()), half].into_iter().flatten() {
            for &frames in cases {
                let explored = Explorer::explore(setting, phase, Budget { frames, ..budget });
                sum.interleavings += explored.interleavings;
                sum.steps += explored.steps;
                sum.raced += explored.raced;
            }
        }
    }
    println!("{sum:?}");
    sum
}

const NOTHING: Budget = Budget { frames: &[], ticks: 0, unasked: 0, transmissions: 0 };

/// Every marking, with DMAs that complete at once, later, and out of step.
const TWO_PACKETS: [&[(bool, u8)]; 5] = [
    &[(false, 0), (false, 1)],
    &[(false, 1), (true, 0)],
    &[(true, 1), (false, 2)],
    &[(true, 0), (true, 2)],
    &[(true, 2), (true, 1)],
];

/// Every marking of three packets.
const THREE_PACKETS: [&[(bool, u8)]; 8] = [
    &[(false, 1), (false, 1), (false, 1)],
    &[(false, 1), (false, 1), (true, 1)],
    &[(false, 1), (true, 1), (false, 1)],
    &[(false, 1), (true, 1), (true, 1)],
    &[(true, 1), (false, 1), (false, 1)],
    &[(true, 1), (false, 1), (true, 1)],
    &[(true, 1), (true, 1), (false, 1)],
    &[(true, 1), (true, 1), (true, 1)],
];

#[test]
fn two_packets_with_a_late_owner_and_an_early_host() {
    let explored = explore(&TWO_PACKETS, Budget { ticks: 1, unasked: 1, ..NOTHING });
    assert!(explored.interleavings > 50_000, "{explored:?}");
    assert!(explored.raced > 5_000, "{explored:?}");
}

#[test]
fn three_packets() {
    let explored = explore(&THREE_PACKETS, NOTHING);
    assert!(explored.interleavings > 50_000, "{explored:?}");
    assert!(explored.raced > 5_000, "{explored:?}");
}

#[test]
fn packets_and_transmissions_on_one_vector() {
    let cases: [&[(bool, u8)]; 2] = [&[(false, 1)], &[(true, 1)]];
    let explored = explore(&cases, Budget { ticks: 2, transmissions: 1, unasked: 1, ..NOTHING });
    assert!(explored.interleavings > 10_000, "{explored:?}");
    assert!(explored.raced > 1_000, "{explored:?}");
}

// Half a minute even in release; run it after a change of vector.rs or queue.rs:
// cargo test --release -p earmark-nic --test exhaustive
#[cfg(not(debug_assertions))]
#[test]
fn deeper() {
    let two = explore(&TWO_PACKETS, Budget { ticks: 2, unasked: 1, transmissions: 1, ..NOTHING });
    let three = explore(&THREE_PACKETS, Budget { ticks: 1, ..NOTHING });
    assert!(two.interleavings + three.interleavings > 10_000_000, "{two:?}, {three:?}");
}
