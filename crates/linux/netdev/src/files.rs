//! A device as the kernel's files show it, in one go.

pub use device::DeviceFiles;

use super::aspm::read_aspm;
use super::deferral::read_deferral;
use super::error::DeviceError;
use super::frequency::{online_cpus, read_frequency};
use super::idle::read_idle;
use super::interrupts::{Interrupt, affinity, of_device, read_interrupts};
use super::root::{Root, directory_of, names_in_proc_net_dev};
use super::softnet::{read_limits, read_softnet};
use super::statistics::read_statistics;
use super::steering::read_steering;
use super::virtualisation::read_virtualisation;

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

/// The devices of this network, by name: those in the tree, or, where that is of another network,
/// those that the kernel lists.
pub fn list_devices(root: &Root) -> Result<Vec<String>, DeviceError> {
    let mut names = if root.is_of_network() {
        let mut names = root.list("sys/class/net")?;
        names.retain(|name| root.has(&format!("sys/class/net/{name}/ifindex")));
        names
    } else {
        names_in_proc_net_dev(&root.read("proc/thread-self/net/dev")?)
    };
    names.sort();
    Ok(names)
}
