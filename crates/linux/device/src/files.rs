//! A device as the kernel's files show it, in one go.

use std::collections::BTreeMap;

use serde::Serialize;

use super::aspm::Aspm;
use super::deferral::Deferral;
use super::frequency::Frequency;
use super::idle::Idle;
use super::interrupts::{Affinity, Interrupt};
use super::softnet::{Softnet, SoftnetLimits};
use super::steering::Steering;
use super::virtualisation::Virtualisation;

/// A device, and what of the machine delays its packets.
#[derive(Debug, Default, Serialize)]
pub struct DeviceFiles {
    /// Its number in its network.
    pub ifindex: u32,
    /// Its driver, if it is on a bus.
    #[serde(rename = "bus_driver")]
    pub driver: Option<String>,
    /// The bus that it is on, such as `pci` or `virtio`; `None`: it is made of software.
    pub bus: Option<String>,
    /// Vendor and device on a PCI bus, such as `8086:10d3`.
    pub pci_id: Option<String>,
    /// Whether its PCIe link sleeps while it is idle; `None`: it has none that the kernel shows.
    pub aspm: Option<Aspm>,
    /// The devices that it is made of, such as those of a bond or below a VLAN.
    pub lower: Vec<String>,
    /// Whether it is up, as in `up`, `down` or `unknown`.
    pub state: Option<String>,
    /// The largest packet, without the Ethernet header, in bytes.
    pub mtu: Option<u64>,
    /// Megabits per second, if its driver says.
    pub speed_mbps: Option<u64>,
    /// The memory that it is near to, if that is known.
    pub numa_node: Option<u64>,
    /// Software that holds interrupts back.
    pub deferral: Deferral,
    /// Its interrupts, with the processors that they go to.
    #[serde(skip)]
    pub interrupts: Vec<(Interrupt, Affinity)>,
    /// Its queues' steering.
    pub steering: Vec<Steering>,
    /// What it has carried.
    pub statistics: BTreeMap<String, u64>,
    /// The receiving softirq of each processor.
    pub softnet: Vec<Softnet>,
    /// The limits of these softirqs.
    pub limits: SoftnetLimits,
    /// How processors idle.
    pub idle: Idle,
    /// How their frequencies are chosen.
    pub frequency: Frequency,
    /// What this system runs in.
    pub virtualisation: Virtualisation,
}
