//! What is known of a device.

use netdev::DeviceFiles;
use netdev::ethtool::{
    Channels, Coalesce, Driver, Eee, Features, Link, QueueCoalesce, Rings, Timestamps,
};
use netdev::netdev::{Napi, Queue};
use netdev::setters::Setter;
use serde::Serialize;

use super::delay::Delay;
use super::lab::LabPort;
use super::lanes::Lane;

/// All that is known of a device.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// What holds a lone received packet back, the longest first.
    pub delays: Vec<Delay>,
    /// Its driver; `None` if it has none that says so.
    pub driver: Option<Driver>,
    /// Its link.
    pub link: Option<Link>,
    /// Whether its link sleeps while it is idle; `None`: its driver does not say.
    pub eee: Option<Eee>,
    /// How it waits before it interrupts; `None`: its driver has no such settings.
    pub coalescing: Option<Coalesce>,
    /// The same for queues that differ from it.
    pub queue_coalescing: Vec<QueueCoalesce>,
    /// Files that set its coalescing, in the order in which they come at boot.
    pub set_by: Vec<Setter>,
    /// Its queues that rules send packets to.
    pub lanes: Vec<Lane>,
    /// Its rings.
    pub rings: Option<Rings>,
    /// Its queues' number.
    pub channels: Option<Channels>,
    /// Its offloads.
    pub features: Option<Features>,
    /// Its timestamps.
    pub timestamps: Option<Timestamps>,
    /// What polls its queues; `None`: the kernel does not say.
    pub napis: Option<Vec<Napi>>,
    /// Its queues, and what polls each.
    pub queues: Option<Vec<Queue>>,
    /// Its interrupts.
    pub interrupts: Vec<Vector>,
    /// The one processor that has all its receive interrupts though they may go to others.
    pub crowded_cpu: Option<u32>,
    /// The process of `irqbalance`, if one is seen.
    pub irqbalance: Option<u32>,
    /// What files say of it and of the machine.
    #[serde(flatten)]
    pub files: DeviceFiles,
    /// The port of a lab's NIC that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabPort>,
    /// What could not be read, and why.
    pub unreadable: Vec<Unreadable>,
}

/// An interrupt of the device.
#[derive(Debug, Serialize)]
pub struct Vector {
    /// Its number.
    pub number: u32,
    /// Its handlers, such as `eth0-TxRx-0`.
    pub handlers: Vec<String>,
    /// How often it came since the machine runs.
    pub count: u64,
    /// The processors that had it, and how often.
    pub per_cpu: Vec<(u32, u64)>,
    /// How often it came in a second, while it was looked at; `None`: it was not.
    pub per_s: Option<f64>,
    /// The processors that it may go to.
    pub cpus_allowed: Option<Vec<u32>>,
    /// The processors that it goes to.
    pub cpus_effective: Option<Vec<u32>>,
}

/// Something that could not be read.
#[derive(Debug, Serialize)]
pub struct Unreadable {
    /// What it is.
    pub what: &'static str,
    /// Why, and what would help.
    pub why: String,
}
