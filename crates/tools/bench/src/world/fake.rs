//! A world without hosts, whose rounds are what a test says.

use anyhow::Result;
use base::distribution::Distribution;
use nic::moderation::Moderation;
use workload::{Counter, Record, SCHEMA, Timing};

use super::World;
use crate::environment::Environment;
use crate::experiment::{Experiment, Plan};
use crate::options::{ExperimentOptions, NicOptions, Text};
use crate::scenario::Run;
use crate::slice::{NicRecord, Part, Slice};

/// Plays a round by calling a function.
pub(crate) struct Fake<F> {
    pub(crate) environment: Environment,
    pub(crate) play: F,
}

impl<F: Fn(&Plan, Moderation) -> Result<Slice>> World for Fake<F> {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn round(&self, plan: &Plan, setting: Moderation, _: Option<Moderation>) -> Result<Slice> {
        (self.play)(plan, setting)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// A round of so many answered requests.
pub(crate) fn slice(transactions: u64, latency: Distribution, nic: NicRecord) -> Slice {
    let record = Record {
        schema: SCHEMA,
        workload: "rr-client".into(),
        window_ns: 1_000_000_000,
        cpu_ns: 2_000_000,
        counters: [(Counter::Transactions, transactions)].into(),
        distributions: [(Timing::Latency, latency)].into(),
        series: None,
    };
    Slice { seconds: 1.0, records: vec![(Part::Asker, record)], nic }
}

/// Four rounds of round trips over TCP under each of `settings`.
pub(crate) fn run(settings: &[&str]) -> Run {
    let settings = settings.iter().map(|setting| Text(setting.parse().unwrap()));
    let options = ExperimentOptions {
        compare: Some(settings.collect()),
        rounds: Some(4),
        ..ExperimentOptions::default()
    };
    Run { experiment: Experiment::TcpRr, world: None, nic: NicOptions::default(), options }
}
