//! What is known of a device.

use std::collections::BTreeMap;

use netdev::DeviceFiles;
use netdev::ethtool::{
    Channels, Coalesce, Driver, Eee, Features, Link, QueueCoalesce, Rings, Timestamps,
};
use netdev::netdev::{Napi, Queue};
use netdev::setters::Setter;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::delays::Delay;
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
    pub number: u32,
    /// Its handlers, such as `eth0-TxRx-0`.
    pub handlers: Vec<String>,
    pub count: u64,
    pub per_cpu: Vec<(u32, u64)>,
    /// How often it came in a second, while it was looked at; `None`: it was not.
    pub per_s: Option<f64>,
    pub cpus_allowed: Option<Vec<u32>>,
    pub cpus_effective: Option<Vec<u32>>,
}

/// What could not be read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Unreadable {
    pub what: &'static str,
    pub why: String,
}
