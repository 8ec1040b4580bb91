//! `earmark adaptive`: Linux's own adaptive moderation against ours, on the same traffic.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use sys::privilege::become_capable;

use bench::environment::{Environment, VIRTUAL};
use bench::experiment::{Experiment, Plan};
use bench::measurement::SCHEMA;
use bench::options::ExperimentOptions;
use bench::world::adaptive::{Change, Decider, changes};
use report::outln;

/// What `earmark adaptive` takes.
#[derive(Args, Debug)]
pub struct AdaptiveArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Only the traffic whose name begins like this
    #[arg(value_name = "TRAFFIC")]
    only: Option<String>,
    /// Seconds of traffic
    #[arg(long, default_value_t = 0.2, value_parser = bench::options::duration)]
    duration: f64,
}

/// What is sent, and which players go late.
struct Traffic {
    name: &'static str,
    about: &'static str,
    plan: Plan,
    late: Vec<usize>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct AdaptiveComparison {
    schema_version: u32,
    environment: Environment,
    traffic: Vec<Compared>,
}

/// Both on one kind of traffic.
#[derive(Debug, Serialize)]
struct Compared {
    name: &'static str,
    about: &'static str,
    duration_s: f64,
    nic: Vec<Change>,
    linux: Vec<Change>,
    /// Both went through the same profiles, in the same order.
    same_profiles: bool,
    /// How long, in microseconds, both had the same profile in force.
    agree_us: u64,
}

/// Plays each kind of traffic twice and prints what was in force.
///
/// # Errors
/// If there is no kernel for guests, or a guest does not do what it should.
pub fn run(args: &AdaptiveArgs) -> Result<()> {
    let privilege = become_capable()?;
    let mut compared = Vec::new();
    for traffic in all(args.duration) {
        if args.only.as_ref().is_some_and(|only| !traffic.name.starts_with(only.as_str())) {
            continue;
        }
        let outcome = compare(&traffic, args.duration)?;
        if !args.json {
            print(&outcome);
        }
        compared.push(outcome);
    }
    if args.json {
        let environment =
            Environment { privilege: privilege.to_string(), ..Environment::read(VIRTUAL) };
        let outcome = AdaptiveComparison { schema_version: SCHEMA, environment, traffic: compared };
        outln!("{}", serde_json::to_string_pretty(&outcome)?);
    }
    Ok(())
}

fn compare(traffic: &Traffic, duration_s: f64) -> Result<Compared> {
    let of = |decider| changes(&traffic.plan, &traffic.late, decider);
    let (nic, linux) = (of(Decider::Nic)?, of(Decider::Linux)?);
    let profiles = |changes: &[Change]| -> Vec<_> {
        changes.iter().map(|change| (change.rx_usecs, change.rx_frames)).collect()
    };
    let end_us = (duration_s * 1e6) as u64;
    Ok(Compared {
        name: traffic.name,
        about: traffic.about,
        duration_s,
        same_profiles: profiles(&nic) == profiles(&linux),
        agree_us: agree_us(&nic, &linux, end_us),
        nic,
        linux,
    })
}

/// For how long both sequences have the same profile in force, until `end_us`.
fn agree_us(one: &[Change], other: &[Change], end_us: u64) -> u64 {
    let in_force = |changes: &[Change], at_us: u64| {
        let last = changes.iter().rfind(|change| change.at_us <= at_us);
        last.map(|change| (change.rx_usecs, change.rx_frames))
    };
    let mut moments: Vec<u64> = one.iter().chain(other).map(|change| change.at_us).collect();
    moments.push(end_us);
    moments.sort_unstable();
    let spans =
        moments.windows(2).filter(|span| in_force(one, span[0]) == in_force(other, span[0]));
    spans.map(|span| span[1] - span[0]).sum()
}

fn print(compared: &Compared) {
    outln!("{}: {}", compared.name, compared.about);
    for (who, changes) in [("adaptive", &compared.nic), ("Linux", &compared.linux)] {
        let step = |change: &Change| {
            let Change { at_us, rx_usecs, .. } = change;
            format!("{:.1} ms {rx_usecs} us", *at_us as f64 / 1e3)
        };
        let steps: Vec<String> = changes.iter().map(step).collect();
        outln!("  {who:<9} {}", steps.join(", "));
    }
    let share = compared.agree_us as f64 / compared.duration_s / 1e4;
    outln!("  the same profile in force for {share:.1} % of the time\n");
}

fn all(duration_s: f64) -> Vec<Traffic> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_the_time_in_which_both_are_the_same() {
        let at = |at_us, rx_usecs| Change { at_us, interrupts: 0, rx_usecs, rx_frames: 256 };
        let one = [at(0, 8), at(100, 64)];
        let other = [at(0, 8), at(130, 64), at(180, 1)];
        assert_eq!(agree_us(&one, &other, 200), 100 + 50);
        assert_eq!(agree_us(&one, &one, 200), 200);
    }
}
