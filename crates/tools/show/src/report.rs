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

use super::delay::Delay;
use super::lab::LabPort;
use super::lanes::Lane;

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Report {
    pub name: String,
    /// What holds a lone received packet back, the longest first.
    pub delays: Vec<Delay>,
    /// Its driver; `None` if it has none that says so.
    #[schemars(with = "Option<Value>")]
    pub driver: Option<Driver>,
    #[schemars(with = "Option<Value>")]
    pub link: Option<Link>,
    /// Whether its link sleeps while it is idle; `None`: its driver does not say.
    #[schemars(with = "Option<Value>")]
    pub eee: Option<Eee>,
    /// How it waits before it interrupts; `None`: its driver has no such settings.
    #[schemars(with = "Option<Value>")]
    pub coalescing: Option<Coalesce>,
    #[schemars(with = "Vec<Value>")]
    pub queue_coalescing: Vec<QueueCoalesce>,
    /// Files that set its coalescing, in the order in which they come at boot.
    #[schemars(with = "Vec<Value>")]
    pub set_by: Vec<Setter>,
    pub lanes: Vec<Lane>,
    #[schemars(with = "Option<Value>")]
    pub rings: Option<Rings>,
    #[schemars(with = "Option<Value>")]
    pub channels: Option<Channels>,
    #[schemars(with = "Option<Value>")]
    pub features: Option<Features>,
    #[schemars(with = "Option<Value>")]
    pub timestamps: Option<Timestamps>,
    /// What polls its queues; `None`: the kernel does not say.
    #[schemars(with = "Option<Vec<Value>>")]
    pub napis: Option<Vec<Napi>>,
    #[schemars(with = "Option<Vec<Value>>")]
    pub queues: Option<Vec<Queue>>,
    pub interrupts: Vec<Vector>,
    /// The one processor that has all its receive interrupts though they may go to others.
    pub crowded_cpu: Option<u32>,
    /// The process of `irqbalance`, if one is seen.
    pub irqbalance: Option<u32>,
    /// What files say of it and of the machine.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub files: DeviceFiles,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabPort>,
    pub unreadable: Vec<Unreadable>,
}

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

#[derive(Debug, Serialize, JsonSchema)]
pub struct Unreadable {
    pub what: &'static str,
    pub why: String,
}
