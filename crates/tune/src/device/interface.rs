//! A network interface of this machine as a device: its driver over the kernel's `ethtool` family,
//! the deferral of interrupts and busy polling by their files.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result, ensure};
use netdev::deferral::{Deferral, read_deferral, write_deferral};
use netdev::ethtool::{Coalesce, Ethtool, Parameter};
use netdev::interrupts::{of_device, read_interrupts};
use netdev::netdev::Netdev;
use netdev::statistics::read_statistics;
use netdev::{Root, list_devices};

use super::{Counted, Device, DeviceKind, Identity, Reopened};
use crate::setting::{Change, Mechanism, Setting, State, Value};

/// The network namespace of this thread.
const NETWORK: &str = "/proc/thread-self/ns/net";

/// Busy polling; only the first network namespace has these.
const BUSY: [(Setting, &str); 2] = [
    (Setting::BusyPoll, "proc/sys/net/core/busy_poll"),
    (Setting::BusyRead, "proc/sys/net/core/busy_read"),
];

/// An interface in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Interface {
    identity: Identity,
    ethtool: Ethtool,
    root: Root,
}

impl Interface {
    /// The interface of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(name: &str) -> Result<Self> {
        let root = Root::here();
        let number = root.number(&format!("sys/class/net/{name}/ifindex"));
        let number = number.with_context(|| format!("no device {name} here; look at: ip link"))?;
        let address = root.word(&format!("sys/class/net/{name}/address"));
        let (place, name) = (network()?, name.to_owned());
        let identity = Identity { kind: DeviceKind::Interface, name, place, number, address };
        Ok(Self { identity, ethtool: Ethtool::open()?, root })
    }

    /// The interface that a journal names, if it is there; under whatever name it has now.
    ///
    /// # Errors
    /// If devices cannot be listed.
    pub fn reopen(identity: &Identity) -> Result<Reopened> {
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

    /// Refuses to change settings of a device whose queues have their own (`ethtool -Q`), for the
    /// same reason. What adaptive moderation chooses for each queue is nobody's own.
    fn refuse_to_level_queues(&self, change: &Coalesce) -> Result<()> {
        let Ok(channels) = self.ethtool.channels(self.name()) else { return Ok(()) };
        let queues = self.ethtool.queue_coalesce(self.name(), channels.receiving());
        // Most drivers do not tell queues apart.
        let Ok(queues) = queues else { return Ok(()) };
        let state = self.read()?;
        for (parameter, _) in change.iter() {
            let is_driven = parameter.name().parse().is_ok_and(|setting| state.is_driven(setting));
            let values = queues.iter().map(|queue| queue.coalesce.get(parameter).unwrap_or(0));
            let differ = values.clone().zip(values.skip(1)).any(|(one, next)| one != next);
            ensure!(
                is_driven || !differ,
                "the queues of {} have {parameter} of their own (ethtool -Q), which a change of \
                 the device's would overwrite; make them alike first; nothing was changed",
                self.name()
            );
        }
        Ok(())
    }

    /// Refuses to change the deferral of a device whose NAPI instances have their own: the kernel
    /// would overwrite those, and nobody could bring them back.
    fn refuse_to_level(&self) -> Result<()> {
        // Kernels before 6.13 have none of their own.
        let Ok(napis) = Netdev::open().and_then(|netdev| netdev.napis(self.name())) else {
            return Ok(());
        };
        let device = read_deferral(&self.root, self.name())?;
        let has_own = napis.iter().any(|napi| {
            let timeout = napi.gro_flush_timeout.or(device.gro_flush_timeout);
            let times = napi.defer_hard_irqs.map(u64::from).or(device.napi_defer_hard_irqs);
            timeout != device.gro_flush_timeout || times != device.napi_defer_hard_irqs
        });
        ensure!(
            !has_own,
            "{}: some of its NAPI instances have a deferral of their own, which a change of the \
             device's would overwrite; make them alike first; nothing was changed",
            self.name()
        );
        Ok(())
    }
}

/// The network namespace of this thread, by its number; `only` where the kernel has but one.
fn network() -> Result<String> {
    match std::fs::metadata(NETWORK) {
        Ok(about) => Ok(about.ino().to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok("only".into()),
        Err(error) => Err(error).with_context(|| format!("read {NETWORK}")),
    }
}

impl Device for Interface {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn driver(&self) -> String {
        self.ethtool
            .driver(self.name())
            .map_or("a device without a driver".into(), |driver| format!("driver {}", driver.name))
    }

    fn read(&self) -> Result<State> {
        let mut state = State::default();
        let coalesce = match self.ethtool.coalesce(self.name()) {
            Err(error) if error.is_unsupported() => Coalesce::new(),
            outcome => outcome?,
        };
        for (parameter, value) in coalesce.iter() {
            if let Ok(setting) = parameter.name().parse::<Setting>() {
                let value = match parameter.is_switch() {
                    true => Value::Switch(value != 0),
                    false => Value::Number(value.into()),
                };
                state.0.insert(setting, value);
            }
        }
        let deferral = read_deferral(&self.root, self.name())?;
        let mut take = |setting, value: Option<u64>| {
            state.0.extend(value.map(|value| (setting, Value::Number(value))));
        };
        take(Setting::GroFlushTimeout, deferral.gro_flush_timeout);
        take(Setting::NapiDeferHardIrqs, deferral.napi_defer_hard_irqs);
        BUSY.into_iter().for_each(|(setting, path)| take(setting, self.root.number(path)));
        Ok(state)
    }

    fn change(&self, change: &Change) -> Result<()> {
        let mut coalesce = Coalesce::new();
        let mut deferral = Deferral::default();
        for (setting, value) in &change.0 {
            let number = value.number().with_context(|| format!("{setting} {value}: no number"))?;
            match setting {
                Setting::GroFlushTimeout => deferral.gro_flush_timeout = Some(number),
                Setting::NapiDeferHardIrqs => deferral.napi_defer_hard_irqs = Some(number),
                _ if setting.mechanism() == Mechanism::Coalescing => {
                    let parameter: Parameter = setting.name().parse()?;
                    coalesce.set(parameter, u32::try_from(number)?);
                }
                _ => {}
            }
        }
        let defers = deferral != Deferral::default();
        if defers {
            self.refuse_to_level()?;
        }
        if !coalesce.is_empty() {
            self.refuse_to_level_queues(&coalesce)?;
            self.ethtool.set_coalesce(self.name(), &coalesce)?;
        }
        if defers {
            write_deferral(&self.root, self.name(), &deferral)?;
        }
        for (setting, path) in BUSY {
            if let Some(value) = change.number(setting) {
                self.root.write(path, &value.to_string())?;
            }
        }
        Ok(())
    }

    fn counted(&self) -> Result<Counted> {
        let all = read_interrupts(&self.root)?;
        let interrupts = of_device(&self.root, self.name(), &all)?;
        let total = interrupts.iter().fold(0_u64, |sum, one| sum.wrapping_add(one.total()));
        let interrupts = (!interrupts.is_empty()).then_some(total);
        let packets = read_statistics(&self.root, self.name())?;
        Ok(Counted { interrupts, packets: packets.get("rx_packets").copied().unwrap_or(0) })
    }
}
