//! The traffic on which adaptive moderation is compared.

use bench::experiment::{Experiment, Plan};
use bench::options::ExperimentOptions;

/// What is sent, and which players go late.
pub(super) struct Traffic {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) plan: Plan,
    pub(super) late: Vec<usize>,
}

/// Every kind of traffic, each of so many seconds; of one that changes at half-time, what comes
/// after is what is measured.
pub(super) fn all(duration_s: f64) -> Vec<Traffic> {
    let timed = |experiment: Experiment, options: ExperimentOptions, clients, warmup_s| {
        let (warmup, duration) = (Some(warmup_s), Some(duration_s - warmup_s));
        experiment.plan(&ExperimentOptions { warmup, duration, ..options }, clients, 1)
    };
    let plan = |experiment, options, clients| timed(experiment, options, clients, 0.0);
    let second_half = |experiment, options| timed(experiment, options, None, duration_s / 2.0);
    let usual = ExperimentOptions::default;
    let rate = |rate| ExperimentOptions { rate: Some(rate), ..usual() };
    let traffic = |name, about, plan| Traffic { name, about, plan, late: Vec::new() };
    let mut slow_then_fast = second_half(Experiment::Pps, rate(10_000));
    let fast = second_half(Experiment::Pps, rate(100_000)).players.remove(1);
    slow_then_fast.players.push(fast);
    vec![
        traffic("pps-10k", "10 000 datagrams a second", plan(Experiment::Pps, rate(10_000), None)),
        traffic("pps-100k", "100 000 a second", plan(Experiment::Pps, rate(100_000), None)),
        traffic("bulk", "one TCP flow as fast as it goes", plan(Experiment::Bulk, usual(), None)),
        traffic(
            "rr",
            "TCP round trips, one after the other",
            plan(Experiment::TcpRr, usual(), None),
        ),
        traffic("rr-8", "the same on 8 connections", plan(Experiment::TcpRr, usual(), Some(8))),
        Traffic {
            name: "slow-then-fast",
            about: "10 000 datagrams a second, and from half-time on 100 000 more",
            plan: slow_then_fast,
            late: vec![2],
        },
        Traffic {
            name: "rr-then-bulk",
            about: "1000 TCP round trips a second, and from half-time on a TCP flow",
            plan: second_half(
                Experiment::Mixed,
                ExperimentOptions { bulk_rate: Some(900), ..usual() },
            ),
            late: vec![3],
        },
    ]
}
