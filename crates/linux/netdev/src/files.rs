//! A device as the kernel's files show it, in one go.

use std::collections::BTreeMap;

use serde::Serialize;

use super::aspm::{Aspm, read_aspm};
use super::deferral::{Deferral, read_deferral};
use super::error::DeviceError;
use super::frequency::{Frequency, online_cpus, read_frequency};
use super::idle::{Idle, read_idle};
use super::interrupts::{Affinity, Interrupt, affinity, of_device, read_interrupts};
use super::root::{Root, directory_of};
use super::softnet::{Softnet, SoftnetLimits, read_limits, read_softnet};
use super::statistics::read_statistics;
use super::steering::{Steering, read_steering};
use super::virtualisation::{Virtualisation, read_virtualisation};

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

/// Reads a device. What the kernel or this user's rights keep back is `None` or empty.
pub fn read_device(root: &Root, device: &str) -> Result<DeviceFiles, DeviceError> {
    let directory = directory_of(device)?;
    let file = |name: &str| format!("{directory}/{name}");
    let path = file("ifindex");
    let ifindex = root.read(&path)?.trim().parse().map_err(|_| root.malformed(&path))?;
    let all = read_interrupts(root).unwrap_or_default();
    let with_affinity = |one: Interrupt| {
        let affinity = affinity(root, one.number);
        (one, affinity)
    };
    let bus = root.link_name(&file("device/subsystem"));
    let is_pci = bus.as_deref() == Some("pci");
    Ok(DeviceFiles {
        ifindex,
        driver: root.link_name(&file("device/driver")),
        bus,
        pci_id: is_pci.then(|| pci_id(root, &directory)).flatten(),
        aspm: is_pci.then(|| read_aspm(root, &directory)).flatten(),
        lower: lower_devices(root, &directory),
        state: root.word(&file("operstate")),
        mtu: root.number(&file("mtu")),
        speed_mbps: root.number(&file("speed")),
        numa_node: root.number(&file("device/numa_node")),
        deferral: read_deferral(root, device)?,
        interrupts: of_device(root, device, &all)?.into_iter().map(with_affinity).collect(),
        steering: read_steering(root, device).unwrap_or_default(),
        statistics: read_statistics(root, device).unwrap_or_default(),
        ..read_machine(root)
    })
}

fn pci_id(root: &Root, directory: &str) -> Option<String> {
    let part = |name: &str| {
        let word = root.word(&format!("{directory}/device/{name}"))?;
        word.strip_prefix("0x").map(str::to_owned)
    };
    Some(format!("{}:{}", part("vendor")?, part("device")?))
}

fn lower_devices(root: &Root, directory: &str) -> Vec<String> {
    let names = root.list(directory).unwrap_or_default();
    let lower = names.iter().filter_map(|name| name.strip_prefix("lower_"));
    let mut lower: Vec<String> = lower.map(str::to_owned).collect();
    lower.sort();
    lower
}

/// Reads what delays packets on any device of a machine; nothing of a device itself.
pub fn read_machine(root: &Root) -> DeviceFiles {
    let cpus = online_cpus(root);
    DeviceFiles {
        softnet: read_softnet(root).unwrap_or_default(),
        limits: read_limits(root),
        idle: read_idle(root, &cpus),
        frequency: read_frequency(root, &cpus),
        virtualisation: read_virtualisation(root),
        ..DeviceFiles::default()
    }
}

/// The devices in a tree, by name.
pub fn list_devices(root: &Root) -> Result<Vec<String>, DeviceError> {
    let mut names = root.list("sys/class/net")?;
    names.retain(|name| root.has(&format!("sys/class/net/{name}/ifindex")));
    names.sort();
    Ok(names)
}
