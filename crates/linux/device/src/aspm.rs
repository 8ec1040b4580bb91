//! ASPM: a PCIe link that sleeps while it is idle, and has to wake before the NIC can write a
//! packet into memory.
//!
//! Files and meaning: Linux, `Documentation/ABI/testing/sysfs-bus-pci` (`link/`, since 5.5) and
//! `Documentation/admin-guide/kernel-parameters.txt` (`pcie_aspm.policy`). How long waking takes is
//! in the link capabilities of both ends (PCI Express Base Specification, 7.5.3.6), of which the
//! kernel shows only root more than the first 64 bytes.

use serde::Serialize;

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
