//! What is known of a device.

use std::collections::BTreeMap;

use device::DeviceFiles;
use device::ethtool::{
    Channels, Coalesce, Driver, Eee, Features, Link, QueueCoalesce, Rings, Timestamps,
};
use device::interrupts::{Affinity, Interrupt};
use device::napi::{Napi, Queue};
use device::setters::Setter;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::delays::{Delay, delays_of};
use super::lab::LabPort;
use super::lanes::Lane;

/// A device, as far as it could be read.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Report {
    /// Its name, such as `eth0`.
    pub name: String,
    /// What holds a lone received packet back, the longest first.
    pub delays: Vec<Delay>,
    /// Its driver; `None` if it has none that says so.
    #[schemars(with = "Option<Value>")]
    pub driver: Option<Driver>,
    /// Speed, duplex, and whether there is a link; `None`: its driver does not say.
    #[schemars(with = "Option<Value>")]
    pub link: Option<Link>,
    /// Whether its link sleeps while it is idle; `None`: its driver does not say.
    #[schemars(with = "Option<Value>")]
    pub eee: Option<Eee>,
    /// How it waits before it interrupts; `None`: its driver has no such settings.
    #[schemars(with = "Option<Value>")]
    pub coalescing: Option<Coalesce>,
    /// Settings of queues that differ from those of the device.
    #[schemars(with = "Vec<Value>")]
    pub queue_coalescing: Vec<QueueCoalesce>,
    /// Files that set its coalescing, in the order in which they come at boot.
    #[schemars(with = "Vec<Value>")]
    pub set_by: Vec<Setter>,
    /// Queues that rules choose.
    pub lanes: Vec<Lane>,
    /// Descriptors of its rings; `None`: its driver does not say.
    #[schemars(with = "Option<Value>")]
    pub rings: Option<Rings>,
    /// Its numbers of queues; `None`: its driver does not say.
    #[schemars(with = "Option<Value>")]
    pub channels: Option<Channels>,
    /// Its offloads; `None`: they cannot be read.
    #[schemars(with = "Option<Value>")]
    pub features: Option<Features>,
    /// The timestamps that it makes; `None`: they cannot be read.
    #[schemars(with = "Option<Value>")]
    pub timestamps: Option<Timestamps>,
    /// What polls its queues; `None`: the kernel does not say.
    #[schemars(with = "Option<Vec<Value>>")]
    pub napis: Option<Vec<Napi>>,
    /// Its queues; `None`: the kernel does not say.
    #[schemars(with = "Option<Vec<Value>>")]
    pub queues: Option<Vec<Queue>>,
    /// Its interrupts, by their numbers.
    pub interrupts: Vec<Vector>,
    /// The one processor that has all its receive interrupts though they may go to others.
    pub crowded_cpu: Option<u32>,
    /// The process of `irqbalance`, if one is seen.
    pub irqbalance: Option<u32>,
    /// What files say of it and of the machine.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub files: DeviceFiles,
    /// The NIC of a lab that is behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabPort>,
    /// What could not be read, and why.
    pub unreadable: Vec<Unreadable>,
}

/// An interrupt of the device.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Vector {
    /// Its number, as in `/proc/irq`.
    pub number: u32,
    /// Its handlers, such as `eth0-TxRx-0`.
    pub handlers: Vec<String>,
    /// How often it came since boot.
    pub count: u64,
    /// The same on each processor that had it: processor and count.
    pub per_cpu: Vec<(u32, u64)>,
    /// How often it came in a second, while it was looked at; `None`: it was not.
    pub per_s: Option<f64>,
    /// Processors that may have it; `None`: not known.
    pub cpus_allowed: Option<Vec<u32>>,
    /// Processors that have it in fact; `None`: not known.
    pub cpus_effective: Option<Vec<u32>>,
}

/// What could not be read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Unreadable {
    /// What of the device, such as `rings`.
    pub what: &'static str,
    /// The reason, and what it takes.
    pub why: String,
}

pub(crate) const NO_DRIVER: &str = "no driver";

/// What is missing where `/sys` cannot be read: interrupts, deferral, steering and counters.
pub const FILES: &str = "interrupts, deferral, steering";

/// Parts of what is known of a device, by the names that [`Unreadable`] has for them.
pub mod part {
    /// The interrupts of the device, and where they go.
    pub const INTERRUPTS: &str = "interrupts";
    /// NAPI deferral of the device.
    pub const DEFERRAL: &str = "deferral";
    /// RPS, RFS and XPS.
    pub const STEERING: &str = "steering";
    /// What the device is on.
    pub const BUS: &str = "bus";
    /// Idle states and frequencies of the machine.
    pub const PROCESSORS: &str = "processors";
    /// Whether the machine is virtual.
    pub const MACHINE: &str = "machine";
    /// Polling by programs.
    pub const BUSY_POLLING: &str = "busy polling";
    /// The name of the driver.
    pub const DRIVER: &str = "driver";
    /// Coalescing by the driver.
    pub const COALESCING: &str = "coalescing";

    /// Those of the device that only files below `/sys` have.
    pub(super) const OF_FILES: [&str; 4] = [INTERRUPTS, DEFERRAL, STEERING, BUS];
}

impl Report {
    /// The same with the delays that follow from all else that is known.
    pub fn with_delays(mut self) -> Self {
        self.delays = delays_of(&self);
        self
    }

    /// The name of its driver, or what stands for one.
    pub fn driver_name(&self) -> &str {
        let reported = self.driver.as_ref().map(|driver| driver.name.as_str());
        reported.or(self.files.driver.as_deref()).unwrap_or(NO_DRIVER)
    }

    /// The name of its driver in a sentence.
    pub fn called_driver(&self) -> &str {
        Some(self.driver_name()).filter(|name| *name != NO_DRIVER).unwrap_or("its driver")
    }

    /// Megabits a second, if the driver knows.
    pub fn speed_mbps(&self) -> Option<u32> {
        let by_file = self.files.speed_mbps.and_then(|speed| u32::try_from(speed).ok());
        self.link.and_then(|link| link.speed_mbps).or(by_file)
    }

    /// Why a [`part`] of it is not known; `None`: it is, or there is nothing of it.
    pub fn why_unread(&self, part: &str) -> Option<&str> {
        let is_of_files = part::OF_FILES.contains(&part);
        let says_so = |it: &&Unreadable| it.what == part || it.what == FILES && is_of_files;
        self.unreadable.iter().find(says_so).map(|it| it.why.as_str())
    }

    /// Whether a [`part`] of it is known, or known to be nothing.
    pub fn has(&self, part: &str) -> bool {
        self.why_unread(part).is_none()
    }
}

/// Interrupts with their handlers, for people and in JSON; `per_s` has the rate of each.
pub fn vectors(interrupts: &[(Interrupt, Affinity)], per_s: Option<&[f64]>) -> Vec<Vector> {
    let vector = |(place, (interrupt, affinity)): (usize, &(Interrupt, Affinity))| Vector {
        number: interrupt.number,
        handlers: interrupt.handlers.clone(),
        count: interrupt.total(),
        per_cpu: interrupt.counts.iter().filter(|(_, n)| *n > 0).copied().collect(),
        per_s: per_s.and_then(|rates| rates.get(place).copied()),
        cpus_allowed: affinity.allowed.clone(),
        cpus_effective: affinity.effective.clone(),
    };
    interrupts.iter().enumerate().map(vector).collect()
}
