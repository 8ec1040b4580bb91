//! Judges a host that answers at once, behind a NIC that delays each interrupt by 75 us.
//!
//! The path is made up here; a prober sends what the plan says, and records times of its own.

use infer::{Abilities, Heard, Plan, Probe};

/// One way, in nanoseconds.
const WIRE: u64 = 40_000;
/// How long the NIC waits after the first packet that it has not reported.
const DELAY: u64 = 75_000;
/// What the host needs for an answer.
const HOST: u64 = 5_000;

fn main() {
    let mut plan = Plan::new(Abilities::default(), 5);
    let (mut now, mut interrupt) = (0, 0);
    while let Some(train) = plan.next_train() {
        let begin = now + train.quiet;
        let mut probes = Vec::new();
        for send in &train.sends {
            let arrived = begin + send.at + WIRE;
            if arrived > interrupt {
                interrupt = arrived + DELAY;
            }
            let received = interrupt + HOST + send.wait + WIRE;
            probes.push(Probe {
                sent: begin + send.at,
                received: Some(received),
                nic: None,
                far: None,
                silent: send.silent,
            });
            now = now.max(received);
        }
        now += 1_000_000;
        plan.record(Heard { train, probes });
    }
    for finding in infer::judge(plan.heard()).findings {
        println!("{:?}, {:.1} us, side: {:?}", finding.family, finding.usecs.value, finding.place);
    }
}
