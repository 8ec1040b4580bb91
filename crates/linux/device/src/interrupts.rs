//! Interrupts: which ones are a device's, how often each processor had them, and which may.
//!
//! Format: `show_interrupts` of Linux, `kernel/irq/proc.c`. The first line names the processors
//! that are online; each other line has a number, a count for each of them, and words: the
//! controller, the number within it, and after at least two spaces the names of all handlers.

use std::collections::BTreeSet;

use serde::Serialize;

use super::cpus::parse_list;
use super::kernel::KernelFiles;

/// An interrupt line of `/proc/interrupts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interrupt {
    /// Its number, as in `/proc/irq`.
    pub number: u32,
    /// How often each processor had it: processor and count.
    pub counts: Vec<(u32, u64)>,
    /// Controller and handlers, such as `PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0`.
    pub words: String,
    /// Its handlers, such as `eth0-TxRx-0`; several share a wire.
    pub handlers: Vec<String>,
}

impl Interrupt {
    /// How often it came, on all processors.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, (_, count)| sum.wrapping_add(*count))
    }

    /// Whether its handlers are named after this: `eth0` and `eth0-TxRx-0`, and not `eth01`.
    pub fn is_named(&self, name: &str) -> bool {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        self.handlers.iter().any(|handler| {
            handler.match_indices(name).any(|(start, _)| {
                let (before, after) =
                    (&handler.as_bytes()[..start], &handler[start + name.len()..]);
                !before.last().is_some_and(is_part)
                    && !after.as_bytes().first().is_some_and(is_part)
            })
        })
    }
}

/// Which processors may have an interrupt, and which do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Affinity {
    /// Those that were asked for.
    pub allowed: Option<Vec<u32>>,
    /// Those that it goes to in fact.
    pub effective: Option<Vec<u32>>,
}

/// Reads `/proc/interrupts`. Lines that are no numbered interrupt are passed over.
pub fn parse_interrupts(text: &str) -> Vec<Interrupt> {
    let mut lines = text.lines();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    lines.filter_map(|line| parse_line(line, &cpus)).collect()
}

fn parse_line(line: &str, cpus: &[u32]) -> Option<Interrupt> {
    let (number, rest) = line.split_once(':')?;
    let number = number.trim().parse().ok()?;
    let mut rest = rest.trim_start();
    let mut counts = Vec::with_capacity(cpus.len());
    for cpu in cpus {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        // A processor that comes online between two lines is not in the first one.
        let Ok(count) = rest[..end].parse() else { break };
        counts.push((*cpu, count));
        rest = rest[end..].trim_start();
    }
    let handlers = rest.rsplit("  ").next().unwrap_or_default();
    let handlers = handlers.split(", ").map(str::trim).filter(|name| !name.is_empty());
    Some(Interrupt {
        number,
        counts,
        words: rest.split_whitespace().collect::<Vec<_>>().join(" "),
        handlers: handlers.map(str::to_owned).collect(),
    })
}

/// The interrupts of a device among `all`: by the numbers that its bus has given it, or by name.
///
/// A device of many ports may share its numbers with others; then the names decide, as far as they
/// name a device at all.
pub fn of_device(
    files: &dyn KernelFiles,
    device: &str,
    directory: &str,
    all: &[Interrupt],
) -> Vec<Interrupt> {
    let numbers = numbers_of(files, directory);
    let by_number = || all.iter().filter(|one| numbers.contains(&one.number));
    let mut names = vec![device.to_owned()];
    // virtio0 and the like: the driver names its handlers after the bus device.
    names.extend(files.link_name(&format!("{directory}/device")).filter(|name| name.len() > 3));
    let by_name = |one: &&Interrupt| names.iter().any(|name| one.is_named(name));
    let named: Vec<Interrupt> = by_number().filter(by_name).cloned().collect();
    match () {
        () if numbers.is_empty() => {
            let named: Vec<Interrupt> = all.iter().filter(by_name).cloned().collect();
            if named.is_empty() { of_parent(files, directory, all) } else { named }
        }
        () if !named.is_empty() && shares_function(files, directory) => named,
        () => by_number().cloned().collect(),
    }
}

/// The interrupt that is named after the driver of the bus device's parent, if only one is:
/// User-Mode Linux calls it `virtio-uml`, whatever it is for.
fn of_parent(files: &dyn KernelFiles, directory: &str, all: &[Interrupt]) -> Vec<Interrupt> {
    let Some(driver) = files.link_name(&format!("{directory}/device/../driver")) else {
        return Vec::new();
    };
    let is_its = |one: &&Interrupt| one.handlers == [driver.as_str()];
    let its: Vec<Interrupt> = all.iter().filter(is_its).cloned().collect();
    if its.len() == 1 { its } else { Vec::new() }
}

fn shares_function(files: &dyn KernelFiles, directory: &str) -> bool {
    files.list(&format!("{directory}/device/net")).is_ok_and(|names| names.len() > 1)
}

fn numbers_of(files: &dyn KernelFiles, directory: &str) -> BTreeSet<u32> {
    // A virtio device is a child of the PCI function that has the interrupts.
    for parent in ["device", "device/.."] {
        let listed = files.list(&format!("{directory}/{parent}/msi_irqs")).unwrap_or_default();
        let mut numbers: BTreeSet<u32> =
            listed.iter().filter_map(|name| name.parse().ok()).collect();
        let wire = files.number(&format!("{directory}/{parent}/irq"));
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
pub fn affinity(files: &dyn KernelFiles, number: u32) -> Affinity {
    let list = |name| parse_list(&files.word(&format!("proc/irq/{number}/{name}"))?);
    Affinity { allowed: list("smp_affinity_list"), effective: list("effective_affinity_list") }
}

/// The process of `irqbalance`, which moves interrupts between processors; `None`: none is seen.
pub fn irqbalance(files: &dyn KernelFiles) -> Option<u32> {
    let mut numbers: Vec<u32> =
        files.list("proc").ok()?.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    let is_it = |id: &u32| files.word(&format!("proc/{id}/comm")).as_deref() == Some("irqbalance");
    numbers.into_iter().find(is_it)
}

/// The interrupt of a receive queue among those of a device, by the names that drivers give their
/// handlers: `eth0-TxRx-1`, `iavf-eth0-TxRx-1`, `eth0-rx-1`, `virtio0-input.1`,
/// `mlx5_comp1@pci:0000:17:00.0`. `None` where no name, or more than one, is that of the queue.
pub fn of_queue(interrupts: &[Interrupt], queue: u32) -> Option<u32> {
    let is_its = |one: &&Interrupt| one.handlers.iter().any(|name| queue_of(name) == Some(queue));
    let mut its = interrupts.iter().filter(is_its);
    let number = its.next()?.number;
    its.next().is_none().then_some(number)
}

/// The receive queue that a handler's name ends with.
fn queue_of(handler: &str) -> Option<u32> {
    let name = handler.split('@').next()?;
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let kind = letters.trim_end_matches(['-', '.', '_']).to_ascii_lowercase();
    let receives = ["rx", "input", "comp"].iter().any(|end| kind.ends_with(end));
    if receives { name[letters.len()..].parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interrupt_of_a_queue_is_found_by_its_name() {
        let named = |names: &[&str]| -> Vec<Interrupt> {
            let one = |(number, name): (usize, &&str)| Interrupt {
                number: number as u32,
                handlers: vec![(*name).to_owned()],
                ..Default::default()
            };
            names.iter().enumerate().map(one).collect()
        };
        for names in [
            ["eth1", "eth1-TxRx-0", "eth1-TxRx-1", "eth1-tx-1"],
            ["virtio0-config", "virtio0-input.0", "virtio0-input.1", "virtio0-output.1"],
            ["mlx5_async0@pci:0000:17:00.0", "mlx5_comp0@pci:0000:17:00.0", "mlx5_comp1@pci:1", ""],
        ] {
            let interrupts = named(&names);
            let found = [0, 1, 2].map(|queue| of_queue(&interrupts, queue));
            assert_eq!(found, [Some(1), Some(2), None], "{names:?}");
        }
        assert_eq!(of_queue(&named(&["a-rx-1", "b-rx-1"]), 1), None, "which of them?");
    }

    #[test]
    fn names_are_whole_words() {
        let handler = |name: &str| Interrupt { handlers: vec![name.into()], ..Default::default() };
        assert!(handler("mlx5_comp0@pci:0000:17:00.0").is_named("0000:17:00.0"));
        assert!(handler("i40e-eth1-TxRx-0").is_named("eth1"));
        assert!(!handler("eth10-rx").is_named("eth1"));
        assert!(!handler("veth1").is_named("eth1"));
        assert!(handler("veth1 eth1").is_named("eth1"));
    }
}
