//! A device as the kernel's files show it, in one go.

use std::collections::BTreeMap;

use serde::Serialize;

use super::aspm::{Aspm, read_aspm};
use super::deferral::Deferral;
use super::frequency::{Frequency, online_cpus, read_frequency};
use super::idle::{Idle, read_idle};
use super::interrupts::{Affinity, Interrupt, affinity, of_device, parse_interrupts};
use super::kernel::{KernelFiles, directory_of};
use super::softnet::{Softnet, SoftnetLimits, parse_softnet, read_limits};
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

/// Reads what files say of a device; `None`: no device has such a name. What the kernel, or the
/// rights of who read it, keep back is `None` or empty.
pub fn read_device(files: &dyn KernelFiles, device: &str) -> Option<DeviceFiles> {
    let directory = directory_of(device)?;
    let file = |name: &str| format!("{directory}/{name}");
    let all = files.text("proc/interrupts").map(|text| parse_interrupts(&text));
    let all = all.unwrap_or_default();
    let with_affinity = |one: Interrupt| {
        let affinity = affinity(files, one.number);
        (one, affinity)
    };
    let bus = files.link_name(&file("device/subsystem"));
    let is_pci = bus.as_deref() == Some("pci");
    Some(DeviceFiles {
        ifindex: files.number(&file("ifindex")).and_then(|it| it.try_into().ok()).unwrap_or(0),
        driver: files.link_name(&file("device/driver")),
        bus,
        pci_id: is_pci.then(|| pci_id(files, &directory)).flatten(),
        aspm: is_pci.then(|| read_aspm(files, &directory)).flatten(),
        lower: lower_devices(files, &directory),
        state: files.word(&file("operstate")),
        mtu: files.number(&file("mtu")),
        speed_mbps: files.number(&file("speed")),
        numa_node: files.number(&file("device/numa_node")),
        deferral: Deferral::read(files, &directory),
        interrupts: of_device(files, device, &directory, &all)
            .into_iter()
            .map(with_affinity)
            .collect(),
        steering: read_steering(files, &format!("{directory}/queues")),
        statistics: read_statistics(files, &directory),
        ..read_machine(files)
    })
}

fn pci_id(files: &dyn KernelFiles, directory: &str) -> Option<String> {
    let part = |name: &str| {
        let word = files.word(&format!("{directory}/device/{name}"))?;
        word.strip_prefix("0x").map(str::to_owned)
    };
    Some(format!("{}:{}", part("vendor")?, part("device")?))
}

fn lower_devices(files: &dyn KernelFiles, directory: &str) -> Vec<String> {
    let names = files.list(directory).unwrap_or_default();
    let lower = names.iter().filter_map(|name| name.strip_prefix("lower_"));
    let mut lower: Vec<String> = lower.map(str::to_owned).collect();
    lower.sort();
    lower
}

/// Reads what delays packets on any device of a machine; nothing of a device itself.
pub fn read_machine(files: &dyn KernelFiles) -> DeviceFiles {
    let cpus = online_cpus(files);
    let softnet = files.text("proc/net/softnet_stat").ok();
    let softnet = softnet.and_then(|text| parse_softnet(&text)).unwrap_or_default();
    DeviceFiles {
        softnet,
        limits: read_limits(files),
        idle: read_idle(files, &cpus),
        frequency: read_frequency(files, &cpus),
        virtualisation: read_virtualisation(files),
        ..DeviceFiles::default()
    }
}

/// The counters in a directory `statistics` of a device by name, such as `rx_packets`. A file that
/// is no number is left out.
pub fn read_statistics(files: &dyn KernelFiles, directory: &str) -> BTreeMap<String, u64> {
    let directory = format!("{directory}/statistics");
    let number = |name: String| {
        let value = files.number(&format!("{directory}/{name}"))?;
        Some((name, value))
    };
    files.list(&directory).unwrap_or_default().into_iter().filter_map(number).collect()
}
