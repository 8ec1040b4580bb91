//! Tuning our own NIC in a world that is made for it: two hosts on this machine, live or in virtual
//! time. Nothing of the machine is touched, and any of the strategies is fair game. It shows what a
//! search does before it is let loose on a device, and it is where it is proven (`cargo xtask bench
//! tune`).

use anyhow::{Context, Result};
use nic::moderation::Moderation;

use super::device::port::strategy;
use super::figures::{Figures, Metric};
use super::setting::{Change, Setting, State, Value};
use super::workload::Kind;
use bench::compare::refuse_silence;
use bench::environment::Environment;
use bench::experiment::{Experiment, Plan};
use bench::measurement::{Rounds, Slice};
use bench::options::ExperimentOptions;
use bench::world::World;

/// A NIC of ours between two hosts, and what is played on them.
pub struct Stage {
    world: Box<dyn World>,
    experiment: Experiment,
    options: ExperimentOptions,
    present: Moderation,
    seed: u64,
}

impl Stage {
    /// Plays `kind` in `world`; the NIC begins as `present` says.
    #[must_use]
    pub fn new(
        world: Box<dyn World>,
        kind: Kind,
        options: ExperimentOptions,
        present: Moderation,
        seed: u64,
    ) -> Self {
        let experiment = match kind {
            Kind::TcpRr => Experiment::TcpRr,
            Kind::LoadedServer => Experiment::LoadedServer,
            Kind::Memcached => Experiment::Memcached,
            Kind::Bulk => Experiment::Bulk,
            Kind::Mixed => Experiment::Mixed,
        };
        Self { world, experiment, options, present, seed }
    }

    /// How the NIC is before anything is tried.
    #[must_use]
    pub fn state(&self) -> State {
        let (usecs, frames) = (self.present.rx_usecs, self.present.rx_frames);
        let adaptive = self.present.timer == nic::moderation::TimerKind::Adaptive;
        State(
            [
                (Setting::Strategy, Value::Text(self.present.to_string())),
                (Setting::AdaptiveRx, Value::Switch(adaptive)),
                (Setting::RxUsecs, Value::Number(usecs.into())),
                (Setting::RxFrames, Value::Number(frames.into())),
            ]
            .into(),
        )
    }

    /// Where it is measured.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        self.world.environment()
    }

    /// One trial of a setting; the number of the round is part of its seed.
    ///
    /// # Errors
    /// If a player fails.
    pub fn once(&self, change: &Change, round: u64) -> Result<Figures> {
        let moderation = strategy(&self.state(), change)?;
        let clients = self.options.clients.as_ref().and_then(|range| range.0.each().next());
        let plan: Plan = self.experiment.plan(&self.options, clients, self.seed + round);
        let slice = self.world.round(&plan, moderation, None)?;
        refuse_silence(&plan, &slice)?;
        Ok(self.figures(slice, moderation))
    }

    fn figures(&self, slice: Slice, moderation: Moderation) -> Figures {
        let slices = [slice];
        let setting = moderation.to_string();
        let rounds =
            Rounds { setting, clients: None, slices: &slices, missed: &[], tells_half: false };
        let measured = rounds.measurement(self.world.environment().clone());
        let mut figures = Figures::default();
        if let Some(latency) = measured.latency_us {
            figures.0.extend([
                (Metric::P50, latency.p50),
                (Metric::P90, latency.p90),
                (Metric::P99, latency.p99),
                (Metric::Max, latency.max),
                (Metric::Mean, latency.mean),
            ]);
        }
        // What the data plane spends on waiting is nobody's cost on a real NIC.
        let others = [
            (Metric::Interrupts, measured.interrupts_per_s),
            (Metric::Cpu, measured.cpu.map(|cpu| cpu.host)),
            (Metric::Transactions, measured.transactions_per_s),
            (Metric::Throughput, measured.bulk_bits_per_s),
        ];
        figures.0.extend(others.into_iter().filter_map(|(metric, value)| Some((metric, value?))));
        figures
    }

    /// Ends the world.
    ///
    /// # Errors
    /// If it does not end well.
    pub fn finish(self) -> Result<()> {
        self.world.finish().context("end the world")
    }
}
