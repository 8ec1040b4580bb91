//! A network interface of this machine as a device: its driver over the kernel's `ethtool` family,
//! the deferral of interrupts by its files and over the `netdev` family, sysctls by theirs; what
//! chooses queues and processors is in `steering.rs`.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result, anyhow, ensure};
use netdev::deferral::{read_deferral, write_deferral};
use netdev::ethtool::{Coalesce, Ethtool, Parameter};
use netdev::interrupts::{of_device, read_interrupts};
use netdev::netdev::QueueCounters;
use netdev::queue_names::queues_among;
use netdev::statistics::read_statistics;
use netdev::{DeviceError, Root, list_devices};
use report::names::no_device;

use super::napi::Napis;
use super::request::{Requests, sysctl_path};
use super::steering::Steering;
use super::{Counted, DeviceKind, Identity, Reopened, TunedDevice};
use crate::failpoint::failpoint;
use crate::setting::steering::Placed;
use crate::setting::{Change, Mechanism, Setting, State, Value, profile};

const NETWORK: &str = "/proc/thread-self/ns/net";

/// An interface in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct Interface {
    identity: Identity,
    ethtool: Ethtool,
    root: Root,
}

impl Interface {
    pub(super) fn open(name: &str) -> Result<Self> {
        let root = Root::here();
        let number = root.number(&format!("sys/class/net/{name}/ifindex"));
        let names = || list_devices(&root).unwrap_or_default();
        let number = number.with_context(|| no_device(name, &names()))?;
        let address = root.word(&format!("sys/class/net/{name}/address"));
        let (place, name) = (network()?, name.to_owned());
        let identity = Identity { kind: DeviceKind::Interface, name, place, number, address };
        Ok(Self { identity, ethtool: Ethtool::open()?, root })
    }

    /// The interface that a journal names, if it is there; under whatever name it has now.
    pub(super) fn reopen(identity: &Identity) -> Result<Reopened> {
        if network()? != identity.place {
            return Ok(Reopened::Elsewhere);
        }
        let root = Root::here();
        let number = |name: &String| root.number(&format!("sys/class/net/{name}/ifindex"));
        let names = list_devices(&root)?;
        let Some(name) = names.into_iter().find(|name| number(name) == Some(identity.number))
        else {
            return Ok(Reopened::Gone);
        };
        let interface = Self::open(&name)?;
        ensure!(
            interface.identity.is(identity),
            "{name} has the number that {} had, but neither its name nor its address: it may be \
             another device; if it is the same, call it {1} again (`ip link set {name} name {1}`) \
             to undo what was changed",
            identity.name,
            identity.name
        );
        Ok(Reopened::Here(Box::new(interface)))
    }

    fn name(&self) -> &str {
        &self.identity.name
    }

    fn steering(&self) -> Steering<'_> {
        Steering { ethtool: &self.ethtool, root: &self.root, name: self.name() }
    }

    fn read_device(&self) -> Result<State> {
        let mut state = State::default();
        let coalesce = match self.ethtool.coalesce(self.name()) {
            Err(error) if error.is_unsupported() => Coalesce::new(),
            outcome => outcome?,
        };
        for (parameter, value) in coalesce.iter() {
            if let Ok(setting) = parameter.name().parse::<Setting>() {
                state.0.insert(setting, value_of(parameter, value));
            }
        }
        let profiles = [
            (Setting::RxProfile, &coalesce.rx_profile),
            (Setting::TxProfile, &coalesce.tx_profile),
        ];
        for (setting, steps) in profiles {
            let steps = steps.as_ref().filter(|steps| !steps.is_empty());
            state.0.extend(steps.map(|steps| (setting, Value::Text(profile::text(steps)))));
        }
        let deferral = read_deferral(&self.root, self.name())?;
        let mut take = |setting, value: Option<u64>| {
            state.0.extend(value.map(|value| (setting, Value::Number(value))));
        };
        take(Setting::GroFlushTimeout, deferral.gro_flush_timeout);
        take(Setting::NapiDeferHardIrqs, deferral.napi_defer_hard_irqs);
        // Only the first network namespace has these.
        for setting in [Setting::BusyPoll, Setting::BusyRead] {
            take(setting, sysctl_path(setting).and_then(|path| self.root.number(&path)));
        }
        let threaded = deferral.threaded.map(|threaded| Value::Switch(threaded != 0));
        state.0.extend(threaded.map(|threaded| (Setting::Threaded, threaded)));
        Ok(state)
    }

    /// All that a queue has of its own coalescing: what the driver has for the device.
    fn read_queue(&self, queue: u16, device: &State) -> Result<Vec<(Setting, Value)>> {
        let queues = self.ethtool.channels(self.name()).map(|channels| channels.receiving());
        // Where the driver does not tell, it may tell of a queue all the same.
        let queues = queues.unwrap_or(u32::from(queue) + 1);
        let all = self.ethtool.queue_coalesce(self.name(), queues)?;
        let found = all.iter().find(|one| one.queue == u32::from(queue)).with_context(|| {
            format!("{} has no queue {queue}: there are {queues}, from 0 on", self.name())
        })?;
        let own = device.0.keys().filter_map(|setting| {
            let (of, parameter) = (setting.of_queue(queue)?, setting.parameter()?);
            let value = found.coalesce.get(parameter).unwrap_or(0);
            Some((of, value_of(parameter, value)))
        });
        Ok(own.collect())
    }

    /// A number below `/proc/sys/net`.
    fn read_sysctl(&self, setting: Setting, path: &str) -> Result<Value> {
        let text = self.root.read(path).with_context(|| {
            format!("{setting}; some are of the machine's own network namespace only")
        })?;
        let text = text.trim();
        let number = text.parse().map_err(|_| {
            anyhow!("{setting} is {text:?}, which is no number of 0 or more; use: sysctl -w")
        })?;
        Ok(Value::Number(number))
    }

    /// Refuses a profile that has not the steps of the device: the kernel would take a part of it.
    fn check_profiles(&self, change: &Change) -> Result<()> {
        let state = self.read_device()?;
        for setting in [Setting::RxProfile, Setting::TxProfile] {
            let steps = |value: Option<&Value>| {
                value.and_then(|value| profile::parse(&value.to_string()).ok()).map(|it| it.len())
            };
            let (own, asked) = (steps(state.get(setting)), steps(change.get(setting)));
            ensure!(
                asked.is_none() || asked == own,
                "the {setting} of {} has {} steps, not {}; nothing was changed",
                self.name(),
                own.unwrap_or(0),
                asked.unwrap_or(0)
            );
        }
        Ok(())
    }

    /// Refuses to change settings of a device whose queues have their own (`ethtool -Q`): undo
    /// could not restore those. It allows values that adaptive moderation chose for a queue, and
    /// queues that the change names.
    fn refuse_to_level_queues(&self, requests: &Requests) -> Result<()> {
        let Ok(channels) = self.ethtool.channels(self.name()) else { return Ok(()) };
        let queues = self.ethtool.queue_coalesce(self.name(), channels.receiving());
        // Most drivers do not tell queues apart.
        let Ok(queues) = queues else { return Ok(()) };
        let state = self.read()?;
        for (parameter, _) in requests.coalesce.iter() {
            let setting = parameter.name().parse::<Setting>().ok();
            let is_named = |queue: u32| {
                let own = requests.queues.iter().find(|(number, _)| u32::from(**number) == queue);
                own.is_some_and(|(_, own)| own.get(parameter).is_some())
            };
            let left = queues.iter().filter(|queue| !is_named(queue.queue));
            let mut values: Vec<u32> =
                left.map(|queue| queue.coalesce.get(parameter).unwrap_or(0)).collect();
            if values.len() < queues.len() {
                // Those that the change does not name follow the device, or have their own.
                let device = setting.and_then(|setting| state.get(setting)?.number());
                values.extend(device.and_then(|value| u32::try_from(value).ok()));
            }
            ensure!(
                setting.is_some_and(|setting| state.is_driven(setting))
                    || values.windows(2).all(|pair| pair[0] == pair[1]),
                "the queues of {} have {parameter} of their own (ethtool -Q), which a change of \
                 the device's would overwrite; make them alike first; nothing was changed",
                self.name()
            );
        }
        Ok(())
    }

    fn coalesce(&self, requests: &Requests) -> Result<(), DeviceError> {
        if !requests.coalesce.is_empty() {
            in_turn(&requests.coalesce, |part| self.ethtool.set_coalesce(self.name(), part))?;
        }
        for (queue, coalesce) in &requests.queues {
            in_turn(coalesce, |part| {
                self.ethtool.set_queue_coalesce(self.name(), u32::from(*queue), part)
            })?;
            failpoint("change: a queue's coalescing");
        }
        Ok(())
    }

    /// What the queues have received, if the driver counts that. The device's own counters may be
    /// some time behind: iavf asks for them every 2 seconds.
    fn packets_of_queues(&self) -> Option<u64> {
        let counters = queues_among(&self.ethtool.statistics(self.name()).ok()?);
        let packets = |queue: &QueueCounters| queue.counters.get("rx-packets").copied();
        counters.iter().filter_map(packets).reduce(u64::wrapping_add)
    }

    /// Adaptive moderation that chooses what `change` asks for, and stays on: iavf and others take
    /// no value beside it.
    fn overrides(&self, change: &Change) -> Option<String> {
        let state = self.read_device().ok()?;
        let switches = change.settings().flat_map(|setting| {
            setting.switches().into_iter().filter(move |adaptive| setting.follows(*adaptive))
        });
        let mut on =
            switches.filter(|adaptive| state.is_on(*adaptive) && change.get(*adaptive).is_none());
        on.next().map(|adaptive| format!("{adaptive} is on, which may be why: add {adaptive} off"))
    }

    /// The same for the deferral of NAPI instances.
    fn refuse_to_level(&self, change: &Change) -> Result<()> {
        // Kernels before 6.13 have none of their own.
        let Ok(napis) = Napis::read(self.name()) else { return Ok(()) };
        let is_of_device = |setting: &Setting| {
            *setting == Setting::IrqSuspendTimeout || setting.mechanism() == Mechanism::Deferral
        };
        let state = self.read_device()?;
        for setting in change.settings().filter(is_of_device) {
            let named = change.settings().filter_map(|other| match other {
                Setting::Queue(queue, of) if *of == setting => Some(queue),
                _ => None,
            });
            napis.refuse_to_level(setting, state.get(setting), &named.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// Whether it has no profiles, which netlink alone takes.
fn is_plain(coalesce: &Coalesce) -> bool {
    coalesce.rx_profile.is_none() && coalesce.tx_profile.is_none()
}

/// Sets coalescing in one request; or, where the driver refuses, its values before its switches:
/// iavf takes no values together with adaptive moderation.
fn in_turn(
    coalesce: &Coalesce,
    set: impl Fn(&Coalesce) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    let Err(refused) = set(coalesce) else { return Ok(()) };
    let (mut values, mut switches) = (Coalesce::new(), Coalesce::new());
    for (parameter, value) in coalesce.iter() {
        let part = if parameter.is_switch() { &mut switches } else { &mut values };
        part.set(parameter, value);
    }
    if values.is_empty() || switches.is_empty() || !is_plain(coalesce) {
        return Err(refused);
    }
    set(&values).and_then(|()| set(&switches)).map_err(|_| refused)
}

fn value_of(parameter: Parameter, value: u32) -> Value {
    if parameter.is_switch() { Value::Switch(value != 0) } else { Value::Number(value.into()) }
}

/// The network namespace of this thread, by its number; `only` where the kernel has but one.
fn network() -> Result<String> {
    match std::fs::metadata(NETWORK) {
        Ok(about) => Ok(about.ino().to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok("only".into()),
        Err(error) => Err(error).with_context(|| format!("read {NETWORK}")),
    }
}

impl TunedDevice for Interface {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn driver(&self) -> String {
        let driver = self.driver_name();
        driver.map_or("a device without a driver".into(), |driver| format!("driver {driver}"))
    }

    fn driver_name(&self) -> Option<String> {
        self.ethtool.driver(self.name()).ok().map(|driver| driver.name)
    }

    fn read_with(&self, named: &[Setting]) -> Result<State> {
        let mut state = self.read_device()?;
        let is_of_napi = |setting: &Setting| setting.mechanism() == Mechanism::Napi;
        let napis = named.iter().any(is_of_napi).then(|| Napis::read(self.name())).transpose()?;
        for setting in named.iter().copied() {
            if state.get(setting).is_some() {
                continue;
            }
            match (setting, setting.mechanism(), &napis) {
                (_, Mechanism::Napi, Some(napis)) => {
                    state.0.insert(setting, napis.value(setting)?);
                }
                (_, Mechanism::Steering | Mechanism::Placement, _) => {
                    let value = self.steering().read(setting)?;
                    state.0.extend(value.map(|value| (setting, value)));
                }
                (Setting::Queue(queue, _), Mechanism::QueueCoalescing, _) => {
                    let own = self.read_queue(queue, &state)?;
                    state.0.extend(own);
                }
                (_, Mechanism::Sysctl, _) => {
                    let path = sysctl_path(setting).unwrap_or_default();
                    state.0.insert(setting, self.read_sysctl(setting, &path)?);
                }
                _ => {}
            }
        }
        Ok(state)
    }

    fn change(&self, change: &Change) -> Result<()> {
        let requests = Requests::of(change)?;
        self.check_profiles(change)?;
        self.steering().check(&requests)?;
        self.refuse_to_level(change)?;
        self.steering().begin(&requests)?;
        if !requests.coalesce.is_empty() {
            self.refuse_to_level_queues(&requests)?;
        }
        self.coalesce(&requests).map_err(|refused| match self.overrides(change) {
            Some(why) => anyhow::Error::new(refused).context(why),
            None => refused.into(),
        })?;
        write_deferral(&self.root, self.name(), &requests.deferral)?;
        if !requests.napis.is_empty() {
            let napis = Napis::read(self.name())?;
            for (queue, change) in &requests.napis {
                napis.change(*queue, change)?;
            }
        }
        for (path, value) in &requests.sysctls {
            self.root.write(path, &value.to_string())?;
        }
        self.steering().finish(&requests)
    }

    fn way_back(&self, before: &State, now: &State) -> Change {
        let mut way = before.restored_from(now);
        way.0.extend(before.overwritten_by(&way).0);
        // Without `ntuple` a driver forgets all rules, those that others have added since, too.
        let own: Vec<Placed> = way.settings().filter_map(Setting::placed).collect();
        let forgets = way.get(Setting::Ntuple) == Some(&Value::Switch(false));
        if forgets && self.steering().rules().has_others(&own) {
            way.0.retain(|(setting, _)| *setting != Setting::Ntuple);
        }
        way
    }

    fn counted(&self) -> Result<Counted> {
        let all = read_interrupts(&self.root)?;
        let interrupts = of_device(&self.root, self.name(), &all)?;
        let total = interrupts.iter().fold(0_u64, |sum, one| sum.wrapping_add(one.total()));
        let interrupts = (!interrupts.is_empty()).then_some(total);
        let packets = match self.packets_of_queues() {
            Some(packets) => packets,
            None => {
                let all = read_statistics(&self.root, self.name())?;
                all.get("rx_packets").copied().unwrap_or(0)
            }
        };
        Ok(Counted { interrupts, packets })
    }
}
