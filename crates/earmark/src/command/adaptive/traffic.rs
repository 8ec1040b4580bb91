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

/// Every kind of traffic, each of so many seconds.
pub(super) fn all(duration_s: f64) -> Vec<Traffic> {
    let plan = |experiment: Experiment, options: ExperimentOptions, clients| {
        let options =
            ExperimentOptions { warmup: Some(0.0), duration: Some(duration_s), ..options };
        experiment.plan(&options, clients, 1)
    };
    let usual = ExperimentOptions::default;
    let rate = |rate| ExperimentOptions { rate: Some(rate), ..usual() };
    let traffic = |name, about, plan| Traffic { name, about, plan, late: Vec::new() };
    let mut slow_then_fast = plan(Experiment::Pps, rate(10_000), None);
    let fast = plan(Experiment::Pps, rate(100_000), None).players.remove(1);
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
            plan: plan(
                Experiment::Mixed,
                ExperimentOptions { bulk_rate: Some(900), ..usual() },
                None,
            ),
            late: vec![3],
        },
    ]
}
