//! The NAPI instances of an interface: settings that each has for itself.
//!
//! An instance has a number that it loses when the device goes down, so users name the queue that
//! it polls. Some drivers do not say which that is (veth, for one). Where such a device has as many
//! instances as queues, they are taken to be in the order of the queues, in which drivers make
//! them.

use anyhow::{Context, Result, bail, ensure};
use netdev::netdev::{Direction, Napi, NapiChange, Netdev, Queue, Threaded};

use crate::setting::{Setting, Value};

/// Whether the kernel says that no NAPI instance polls an interface, so that nothing can be
/// deferred there. False where it does not say (before Linux 6.7).
pub fn is_unpolled(device: &str) -> bool {
    let napis = Netdev::open().and_then(|netdev| netdev.napis(device));
    napis.is_ok_and(|napis| napis.is_empty())
}

#[derive(Debug)]
pub(super) struct Napis {
    netdev: Netdev,
    device: String,
    all: Vec<Napi>,
    queues: Vec<Queue>,
}

impl Napis {
    pub(super) fn read(device: &str) -> Result<Self> {
        let read = || {
            let netdev = Netdev::open()?;
            let (all, queues) = (netdev.napis(device)?, netdev.queues(device)?);
            Ok::<_, netdev::DeviceError>((netdev, all, queues))
        };
        let (netdev, mut all, queues) = read().with_context(|| {
            format!(
                "settings of the NAPI instances of {device} take Linux 6.13; those of the whole \
                 device are gro-flush-timeout and napi-defer-hard-irqs"
            )
        })?;
        ensure!(
            !all.is_empty(),
            "{device} has no NAPI instances now: it is down (`ip link set {device} up`), or its \
             driver has none (a veth has them while GRO is on: `ethtool -K {device} gro on`)"
        );
        all.sort_by_key(|napi| napi.id);
        Ok(Self { netdev, device: device.to_owned(), all, queues })
    }

    fn of_queue(&self, queue: u16) -> Result<&Napi> {
        let device = &self.device;
        let receiving: Vec<&Queue> =
            self.queues.iter().filter(|queue| queue.direction == Direction::Rx).collect();
        let found = receiving.iter().find(|one| one.id == u32::from(queue));
        let Some(found) = found else {
            bail!("{device} has no queue {queue}: there are {}, from 0 on", receiving.len());
        };
        let by_order = || {
            let is_alike = receiving.iter().all(|queue| queue.napi.is_none())
                && self.all.len() == receiving.len();
            is_alike.then(|| self.all.get(usize::from(queue))).flatten()
        };
        let by_driver = |id| self.all.iter().find(|napi| napi.id == id);
        found.napi.map_or_else(by_order, by_driver).with_context(|| {
            format!(
                "the driver of {device} does not say which NAPI instance polls queue {queue}; use \
                 the settings of the whole device"
            )
        })
    }

    /// The value of a setting of a queue's instance; or of all, as words where they differ.
    pub(super) fn value(&self, setting: Setting) -> Result<Value> {
        if let Setting::Queue(queue, of) = setting {
            return value_of(*of, self.of_queue(queue)?);
        }
        let all = self.all.iter().map(|napi| value_of(setting, napi));
        let all: Vec<Value> = all.collect::<Result<_>>()?;
        if all.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(all[0].clone());
        }
        let words: Vec<String> = all.iter().map(ToString::to_string).collect();
        Ok(Value::Text(words.join("/")))
    }

    /// Changes the instance of a queue, or all.
    ///
    /// # Errors
    /// If the kernel refuses; those before have been changed, then.
    pub(super) fn change(&self, queue: Option<u16>, change: &NapiChange) -> Result<()> {
        let one = queue.map(|queue| self.of_queue(queue)).transpose()?;
        for napi in one.map_or(&self.all[..], std::slice::from_ref) {
            self.netdev.set_napi(napi.id, change)?;
        }
        Ok(())
    }

    /// Refuses to change a setting of all instances alike where some have one of their own: undo
    /// could not restore it. `device` is what the device has for all, `named` says which queues
    /// are changed besides.
    pub(super) fn refuse_to_level(
        &self,
        setting: Setting,
        device: Option<&Value>,
        named: &[u16],
    ) -> Result<()> {
        let named = named.iter().map(|queue| self.of_queue(*queue).map(|napi| napi.id));
        let named: Vec<u32> = named.collect::<Result<_>>()?;
        let left = self.all.iter().filter(|napi| !named.contains(&napi.id));
        // Kernels before 6.13 have none of their own, and those before 6.17 no threads.
        let mut values: Vec<Value> = left.flat_map(|napi| value_of(setting, napi)).collect();
        if !values.is_empty() {
            values.extend(device.cloned());
        }
        ensure!(
            values.windows(2).all(|pair| pair[0] == pair[1]),
            "some NAPI instances of {} have a {setting} of their own, which a change of the \
             device's would overwrite; make them alike first, by queue:NUMBER:{setting}; nothing \
             was changed",
            self.device
        );
        Ok(())
    }
}

fn value_of(setting: Setting, napi: &Napi) -> Result<Value> {
    let number = match setting {
        Setting::GroFlushTimeout => napi.gro_flush_timeout,
        Setting::NapiDeferHardIrqs => napi.defer_hard_irqs.map(u64::from),
        Setting::IrqSuspendTimeout => napi.irq_suspend_timeout,
        _ => return is_threaded(napi),
    };
    number.map(Value::Number).with_context(|| {
        format!("this kernel has no {setting} of NAPI instances, which came with Linux 6.13")
    })
}

fn is_threaded(napi: &Napi) -> Result<Value> {
    match napi.threaded {
        Some(Threaded::Disabled) => Ok(Value::Switch(false)),
        Some(Threaded::Enabled) => Ok(Value::Switch(true)),
        Some(Threaded::BusyPoll) => {
            bail!("threaded is busy-poll, which Earmark neither sets nor brings back")
        }
        None => bail!(
            "this kernel has no threaded of NAPI instances, which came with Linux 6.17; that of \
             the whole device: threaded"
        ),
    }
}
