//! Interrupts: which ones are a device's, by files below `/sys` and `/proc`.

use std::collections::BTreeSet;

use device::cpus::{parse_list, write_list};
pub use device::interrupts::{Affinity, Interrupt, of_queue, parse_interrupts};

use super::error::DeviceError;
use super::root::{Root, directory_of};

/// All interrupts of the machine.
pub fn read_interrupts(root: &Root) -> Result<Vec<Interrupt>, DeviceError> {
    root.read("proc/interrupts").map(|text| parse_interrupts(&text))
}

/// The interrupts of a device among `all`: by the numbers that its bus has given it, or by name.
///
/// A device of many ports may share its numbers with others; then the names decide, as far as they
/// name a device at all.
pub fn of_device(
    root: &Root,
    device: &str,
    all: &[Interrupt],
) -> Result<Vec<Interrupt>, DeviceError> {
    let directory = directory_of(device)?;
    let numbers = numbers_of(root, &directory);
    let by_number = || all.iter().filter(|one| numbers.contains(&one.number));
    let mut names = vec![device.to_owned()];
    // virtio0 and the like: the driver names its handlers after the bus device.
    names.extend(root.link_name(&format!("{directory}/device")).filter(|name| name.len() > 3));
    let by_name = |one: &&Interrupt| names.iter().any(|name| one.is_named(name));
    let named: Vec<Interrupt> = by_number().filter(by_name).cloned().collect();
    Ok(match () {
        () if numbers.is_empty() => {
            let named: Vec<Interrupt> = all.iter().filter(by_name).cloned().collect();
            if named.is_empty() { of_parent(root, &directory, all) } else { named }
        }
        () if !named.is_empty() && shares_function(root, &directory) => named,
        () => by_number().cloned().collect(),
    })
}

/// The interrupt that is named after the driver of the bus device's parent, if only one is:
/// User-Mode Linux calls it `virtio-uml`, whatever it is for.
fn of_parent(root: &Root, directory: &str, all: &[Interrupt]) -> Vec<Interrupt> {
    let Some(driver) = root.link_name(&format!("{directory}/device/../driver")) else {
        return Vec::new();
    };
    let is_its = |one: &&Interrupt| one.handlers == [driver.as_str()];
    let its: Vec<Interrupt> = all.iter().filter(is_its).cloned().collect();
    if its.len() == 1 { its } else { Vec::new() }
}

fn shares_function(root: &Root, directory: &str) -> bool {
    root.list(&format!("{directory}/device/net")).is_ok_and(|names| names.len() > 1)
}

fn numbers_of(root: &Root, directory: &str) -> BTreeSet<u32> {
    // A virtio device is a child of the PCI function that has the interrupts.
    for parent in ["device", "device/.."] {
        let listed = root.list(&format!("{directory}/{parent}/msi_irqs")).unwrap_or_default();
        let mut numbers: BTreeSet<u32> =
            listed.iter().filter_map(|name| name.parse().ok()).collect();
        let wire = root.number(&format!("{directory}/{parent}/irq"));
        if numbers.is_empty() {
            numbers
                .extend(wire.and_then(|wire| u32::try_from(wire).ok()).filter(|wire| *wire != 0));
        }
        if !numbers.is_empty() {
            return numbers;
        }
    }
    BTreeSet::new()
}

/// Which processors an interrupt goes to. `None` where the file is missing or not readable.
pub fn affinity(root: &Root, number: u32) -> Affinity {
    let list = |name| parse_list(&root.word(&format!("proc/irq/{number}/{name}"))?);
    Affinity { allowed: list("smp_affinity_list"), effective: list("effective_affinity_list") }
}

/// The process of `irqbalance`, which moves interrupts between processors; `None`: none is seen.
pub fn irqbalance(root: &Root) -> Option<u32> {
    let mut numbers: Vec<u32> =
        root.list("proc").ok()?.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    let is_it = |id: &u32| root.word(&format!("proc/{id}/comm")).as_deref() == Some("irqbalance");
    numbers.into_iter().find(is_it)
}

/// Sets the processors that may have an interrupt.
pub fn set_affinity(root: &Root, number: u32, cpus: &[u32]) -> Result<(), DeviceError> {
    root.write(&format!("proc/irq/{number}/smp_affinity_list"), &write_list(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_moved_by_its_file() {
        let path = std::env::temp_dir().join(format!("earmark-irq-{}", std::process::id()));
        let directory = path.join("proc/irq/67");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("smp_affinity_list"), "0-3").unwrap();
        let root = Root::at(&path);
        set_affinity(&root, 67, &[0, 1, 3]).unwrap();
        let allowed = affinity(&root, 67).allowed;
        let missing = set_affinity(&root, 68, &[0]).unwrap_err();
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(allowed, Some(vec![0, 1, 3]));
        assert!(missing.is_unsupported(), "{missing}");
    }
}
