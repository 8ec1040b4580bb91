//! Tuning our own NIC in a world that is made for it: two hosts on this machine, live or in virtual
//! time. Nothing of the machine is touched, and any of the strategies is fair game. It shows what a
//! search does before it is let loose on a device, and it is where it is proven (`cargo xtask bench
//! tune`).

use anyhow::Result;
use nic::moderation::Moderation;

use super::figures::{Figures, Metric};
use super::setting::{Change, Setting, State, Value, strategy};
use super::workload::Workload;
use bench::attempt::refuse_silence;
use bench::environment::Environment;
use bench::experiment::Plan;
use bench::measurement::Rounds;
use bench::options::ExperimentOptions;
use bench::world::World;

/// A NIC of ours between two hosts, and what is played on them.
pub struct TunedWorld {
    world: Box<dyn World>,
    workload: Workload,
    options: ExperimentOptions,
    clients: u32,
    present: Moderation,
}

impl TunedWorld {
    /// Plays `workload` in `world`; the NIC begins as `present` says.
    pub fn new(
        world: Box<dyn World>,
        workload: Workload,
        options: ExperimentOptions,
        clients: u32,
        present: Moderation,
    ) -> Self {
        Self { world, workload, options, clients, present }
    }

    /// How the NIC is before anything is tried.
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

    /// What is played.
    pub fn workload(&self) -> Workload {
        self.workload
    }

    /// Where it is measured.
    pub fn environment(&self) -> &Environment {
        self.world.environment()
    }

    /// One trial of a setting. Everything random follows from `seed`.
    pub fn once(&self, change: &Change, seed: u64) -> Result<Figures> {
        Ok(self.play(change, &self.plan(seed))?.0)
    }

    /// What is played.
    pub(crate) fn plan(&self, seed: u64) -> Plan {
        self.workload.experiment().plan(&self.options, Some(self.clients), seed)
    }

    /// The figures of a setting, and nanoseconds in which each host was busy where that is
    /// modelled.
    pub(crate) fn play(&self, change: &Change, plan: &Plan) -> Result<(Figures, Vec<u64>)> {
        let moderation = strategy::changed(&self.state(), change)?;
        let slice = self.world.round(plan, moderation, None)?;
        refuse_silence(plan, &slice)?;
        let mut figures = Figures::default();
        figures.add(&slice.records)?;
        let busy = slice.nic.ports.iter().filter_map(|port| port.busy_ns);
        let busy = busy.map(|of_host| of_host.iter().sum()).collect();
        let (setting, slices) = (moderation.to_string(), [slice]);
        let rounds =
            Rounds { setting, clients: None, slices: &slices, missed: &[], reports_half: false };
        let measured = rounds.measurement(self.environment().clone());
        // What the data plane spends on waiting is no cost of a real NIC.
        let others = [
            (Metric::Interrupts, measured.interrupts_per_s),
            (Metric::Cpu, measured.cpu.map(|cpu| cpu.host)),
        ];
        figures.0.extend(others.into_iter().filter_map(|(metric, value)| Some((metric, value?))));
        Ok((figures, busy))
    }

    /// Ends the world.
    pub fn finish(self) -> Result<()> {
        self.world.finish()
    }
}
