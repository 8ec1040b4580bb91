//! What a model of this machine lets expect of settings, before any of them is tried.
//!
//! `earmark calibrate --machine FILE` measures what interrupts, packets and wake-ups cost here; the
//! model plays the workload with that, in milliseconds a setting. It knows neither the NIC nor the
//! way to the far host, so it says where to look first, and no more: all that is concluded was
//! measured.

use anyhow::Result;
use bench::environment::MODEL;
use bench::options::{ExperimentOptions, NicOptions, Ports};
use bench::polling::{PollMode, Polling};
use bench::world::model::ModelWorld;
use nic::moderation::{Moderation, TimerKind};

use super::figures::{Figures, Metric};
use super::setting::{Change, Setting, State, Value};
use super::workload::Workload;
use super::world::TunedWorld;

/// Seconds that the model plays each setting, and before that.
const DURATION_S: f64 = 0.05;
const WARMUP_S: f64 = 0.02;

/// A model of the hosts, and what is played there.
pub struct Expectation {
    world: TunedWorld,
    machine: String,
    /// Hosts whose NICs are tuned, by number.
    tuned: std::ops::Range<usize>,
    state: State,
}

impl Expectation {
    /// That of `machine`, as `bench --machine` takes it, for a device of this host that is like
    /// `state`. None where the model cannot say anything: its bulk TCP is not Linux's.
    ///
    /// # Errors
    /// If there is no such machine.
    pub fn of_device(
        machine: &str,
        workload: Workload,
        options: &ExperimentOptions,
        clients: u32,
        state: &State,
    ) -> Result<Option<Self>> {
        let ports = if workload.asks_far_host() { Ports::A } else { Ports::B };
        let number = |setting| state.get(setting).and_then(Value::number);
        let usecs = number(Setting::RxUsecs).and_then(|usecs| usecs.try_into().ok());
        let frames = number(Setting::RxFrames).and_then(|frames| frames.try_into().ok());
        // Most NICs hold a packet so long; those that wait after an interrupt hold fewer.
        let present = Moderation {
            timer: if state.is_on(Setting::AdaptiveRx) {
                TimerKind::Adaptive
            } else {
                TimerKind::Delay
            },
            rx_usecs: usecs.unwrap_or(0),
            rx_frames: frames.unwrap_or(0),
            ..Moderation::DISABLED
        };
        Self::new(machine, workload, options, clients, (ports, present), state)
    }

    /// The same for NICs of ours.
    ///
    /// # Errors
    /// If there is no such machine.
    pub fn new(
        machine: &str,
        workload: Workload,
        options: &ExperimentOptions,
        clients: u32,
        (ports, present): (Ports, Moderation),
        state: &State,
    ) -> Result<Option<Self>> {
        let nic = NicOptions {
            ports: Some(ports),
            machine: Some(machine.to_owned()),
            ..NicOptions::default()
        };
        let world = ModelWorld::new(&nic, worlds::environment::read(MODEL))?;
        if workload.has_throughput() {
            return Ok(None);
        }
        let options = ExperimentOptions {
            duration: Some(DURATION_S),
            warmup: Some(WARMUP_S),
            ..options.clone()
        };
        let world = TunedWorld::new(Box::new(world), workload, options, clients, present);
        let machine = world.environment().machine.clone();
        let tuned = ports.numbers(2);
        Ok(Some(Self { world, machine, tuned, state: state.clone() }))
    }

    /// The machine that it is of, in words.
    pub(crate) fn machine(&self) -> &str {
        &self.machine
    }

    /// What is to be expected of a setting; nothing of one that the model does not have.
    pub(crate) fn figures(&self, change: &Change) -> Option<Figures> {
        const KNOWN: [Setting; 6] = [
            Setting::Strategy,
            Setting::AdaptiveRx,
            Setting::RxUsecs,
            Setting::RxFrames,
            Setting::GroFlushTimeout,
            Setting::NapiDeferHardIrqs,
        ];
        if change.settings().any(|setting| !KNOWN.contains(&setting)) {
            return None;
        }
        let number = |setting| {
            change.number(setting).or_else(|| self.state.get(setting).and_then(Value::number))
        };
        let mut plan = self.world.plan(1);
        let deferred = number(Setting::GroFlushTimeout).unwrap_or(0) / 1_000;
        if deferred > 0 && number(Setting::NapiDeferHardIrqs).unwrap_or(0) > 0 {
            let polling = Polling { mode: PollMode::Defer, usecs: deferred.try_into().ok()? };
            plan.polling = self.tuned.clone().map(|host| (host, polling)).collect();
        }
        let nic = change.without(|setting| {
            matches!(setting, Setting::GroFlushTimeout | Setting::NapiDeferHardIrqs)
        });
        // A setting under which nothing is answered has no figures.
        let (mut figures, busy) = self.world.play(&nic, &plan).ok()?;
        let busy: u64 = busy.get(self.tuned.clone())?.iter().sum();
        figures.0.insert(Metric::Cpu, busy as f64 / (plan.duration_s * 1e9));
        Some(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = "adaptive-rx off rx-usecs 30 rx-frames 0 tx-usecs 0 \
                          gro-flush-timeout 0 napi-defer-hard-irqs 0";

    fn of_device(workload: Workload) -> Option<Expectation> {
        let options = ExperimentOptions::default();
        let state = DEVICE.parse().unwrap();
        Expectation::of_device("server", workload, &options, 1, &state).unwrap()
    }

    #[test]
    fn a_device_holds_one_way_and_what_is_not_modelled_has_no_figures() {
        for workload in [Workload::TcpRr, Workload::LoadedServer, Workload::Memcached] {
            let expectation = of_device(workload).unwrap();
            let of = |change: &str, metric| {
                expectation.figures(&change.parse().unwrap()).and_then(|it| it.get(metric))
            };
            let [at_once, held, now] =
                ["rx-usecs 0", "rx-usecs 200", ""].map(|change| of(change, Metric::P50).unwrap());
            assert!((150.0..=250.0).contains(&(held - at_once)), "{workload:?}: {at_once}, {held}");
            assert!(at_once < now && now < held, "{workload:?}: as it is, {now}");
            let deferred = "rx-usecs 0 gro-flush-timeout 500us napi-defer-hard-irqs 2";
            let [often, seldom] =
                ["rx-usecs 0", deferred].map(|change| of(change, Metric::Interrupts).unwrap());
            assert!(seldom < often, "{workload:?}: {seldom} of {often} interrupts");
            assert!(of("rx-usecs 0", Metric::Cpu).unwrap() > 0.001, "{workload:?}");
            assert_eq!(of("rx-usecs 0 tx-usecs 8", Metric::P50), None);
        }
        assert!(of_device(Workload::Mixed).is_none() && of_device(Workload::Bulk).is_none());
    }
}
