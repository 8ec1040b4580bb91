//! ASPM: a PCIe link that sleeps while it is idle, and has to wake before the NIC can write a
//! packet into memory.
//!
//! Files and meaning: Linux, `Documentation/ABI/testing/sysfs-bus-pci` (`link/`, since 5.5) and
//! `Documentation/admin-guide/kernel-parameters.txt` (`pcie_aspm.policy`). How long waking takes is
//! in the link capabilities of both ends (PCI Express Base Specification, 7.5.3.6), of which the
//! kernel shows only root more than the first 64 bytes.

use serde::Serialize;

use super::kernel::KernelFiles;

/// The link of a PCIe device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Aspm {
    /// The machine's policy, such as `default` (what the firmware has set) or `performance`.
    pub policy: Option<String>,
    /// The states that are on for this link, such as `L1`, the shallowest first.
    pub states: Vec<&'static str>,
    /// What waking from L1 takes at most, in microseconds, by the slower end of the link; `None`
    /// if it is not readable, or a substate of L1 is on, whose time is not there.
    pub l1_exit_us: Option<u32>,
}

/// States that a link may be in, by the names of their files; both ends have to have them.
const STATES: [(&str, &str); 4] =
    [("l0s_aspm", "L0s"), ("l1_aspm", "L1"), ("l1_1_aspm", "L1.1"), ("l1_2_aspm", "L1.2")];

/// Reads that of the PCI device in a directory of a network device; `None`: the kernel shows none.
pub fn read_aspm(files: &dyn KernelFiles, directory: &str) -> Option<Aspm> {
    let link = format!("{directory}/device/link");
    let states = STATES
        .iter()
        .filter_map(|(file, name)| Some((files.number(&format!("{link}/{file}"))?, *name)));
    let states: Vec<_> = states.collect();
    if states.is_empty() {
        return None;
    }
    let states: Vec<_> = states.into_iter().filter(|(on, _)| *on != 0).map(|(_, it)| it).collect();
    // The parent of the device is the other end of its link. Neither is asked needlessly.
    let exits =
        || Some(exit_of(files, directory, "device")?.max(exit_of(files, directory, "device/..")?));
    let l1_exit_us = if states.last() == Some(&"L1") { exits() } else { None };
    Some(Aspm { policy: policy(files), states, l1_exit_us })
}

fn exit_of(files: &dyn KernelFiles, directory: &str, end: &str) -> Option<u32> {
    // Capabilities are in the first 256 bytes; the rest would be asked of the device for nothing.
    let config = files.bytes(&format!("{directory}/{end}/config"), 256).ok()?;
    l1_exit_us(&config)
}

fn policy(files: &dyn KernelFiles) -> Option<String> {
    let text = files.word("sys/module/pcie_aspm/parameters/policy")?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// What the link capabilities in a configuration space say that waking from L1 takes at most;
/// `None` if they are not there, or say no limit.
pub fn l1_exit_us(config: &[u8]) -> Option<u32> {
    /// "Capabilities List" of the status, and where the list begins.
    const HAS_LIST: u8 = 0x10;
    const FIRST: usize = 0x34;
    const PCI_EXPRESS: u8 = 0x10;
    let byte = |at: usize| config.get(at).copied();
    if byte(6)? & HAS_LIST == 0 {
        return None;
    }
    let mut at = usize::from(byte(FIRST)? & !3);
    // Each takes four bytes at least, so a longer list goes in circles.
    for _ in 0..64 {
        match (at, byte(at)?) {
            (0, _) => return None,
            (_, PCI_EXPRESS) => {
                let capabilities =
                    u32::from(byte(at + 0x0d)?) >> 7 | u32::from(byte(at + 0x0e)?) << 1;
                let code = capabilities & 7;
                return (code < 7).then_some(1 << code);
            }
            _ => at = usize::from(byte(at + 1)? & !3),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A configuration space with a list of two capabilities.
    fn config(link_capabilities: u32) -> Vec<u8> {
        let mut config = vec![0; 256];
        config[6] = 0x10;
        config[0x34] = 0x40;
        // Power management, then PCI Express.
        (config[0x40], config[0x41]) = (0x01, 0xa0);
        config[0xa0] = 0x10;
        config[0xac..0xb0].copy_from_slice(&link_capabilities.to_le_bytes());
        config
    }

    #[test]
    fn waking_takes_what_the_capabilities_say() {
        // That of an I350: `LnkCap: ... ASPM L0s L1, Exit Latency L0s <4us, L1 <32us`.
        assert_eq!(l1_exit_us(&config(0x0042_6c41 | 5 << 15)), Some(32));
        assert_eq!(l1_exit_us(&config(0)), Some(1));
        assert_eq!(l1_exit_us(&config(6 << 15)), Some(64));
        assert_eq!(l1_exit_us(&config(7 << 15)), None, "more than 64 us");
        assert_eq!(l1_exit_us(&config(5 << 15)[..64]), None, "what users other than root see");
    }

    #[test]
    fn lists_that_are_none_end() {
        let mut circle = config(0);
        circle[0x41] = 0x40;
        assert_eq!(l1_exit_us(&circle), None);
        circle[0x41] = 0xfc;
        circle[0xfc..].copy_from_slice(&[0x10, 0, 0, 0]);
        assert_eq!(l1_exit_us(&circle), None, "beyond the end");
        assert_eq!(l1_exit_us(&[]), None);
    }
}
