//! `earmark adaptive`: Linux's own adaptive moderation against ours, on the same traffic.

mod traffic;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use sys::privilege::become_capable;

use bench::environment::{Environment, VIRTUAL};
use report::{json, outln};
use traffic::Traffic;
use worlds::adaptive::{Change, Decider};

#[derive(Args, Debug)]
pub(crate) struct AdaptiveArgs {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Only the traffic whose name begins like this
    #[arg(value_name = "TRAFFIC")]
    only: Option<String>,
    /// Seconds of traffic
    #[arg(long, default_value_t = 0.2, value_parser = bench::options::duration)]
    duration: f64,
}

#[derive(Debug, Serialize)]
struct AdaptiveComparison {
    environment: Environment,
    traffic: Vec<Compared>,
}

/// Both on one kind of traffic.
#[derive(Debug, Serialize)]
struct Compared {
    name: String,
    about: String,
    duration_s: f64,
    nic: Vec<Change>,
    linux: Vec<Change>,
    /// Both went through the same profiles, in the same order.
    same_profiles: bool,
    /// How long, in microseconds, both had the same profile in force.
    agree_us: u64,
}

/// Plays each kind of traffic twice and prints what was in force.
pub(crate) fn run(args: &AdaptiveArgs) -> Result<()> {
    let privilege = become_capable()?;
    let mut traffic = Traffic::all(args.duration)?;
    traffic.retain(|it| args.only.as_ref().is_none_or(|only| it.name.starts_with(only.as_str())));
    let mut compared = Vec::new();
    for traffic in traffic {
        let outcome = compare(&traffic, args.duration)?;
        if !args.json {
            print(&outcome);
        }
        compared.push(outcome);
    }
    if args.json {
        let environment =
            Environment { privilege: privilege.to_string(), ..worlds::environment::read(VIRTUAL) };
        json::print(&AdaptiveComparison { environment, traffic: compared })?;
    }
    Ok(())
}

fn compare(traffic: &Traffic, duration_s: f64) -> Result<Compared> {
    let observed = traffic.observed();
    let (nic, linux) = (observed.changes(Decider::Nic)?, observed.changes(Decider::Linux)?);
    let profiles = |changes: &[Change]| -> Vec<_> {
        changes.iter().map(|change| (change.rx_usecs, change.rx_frames)).collect()
    };
    let end_us = (duration_s * 1e6) as u64;
    Ok(Compared {
        name: traffic.name.clone(),
        about: traffic.about.clone(),
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
