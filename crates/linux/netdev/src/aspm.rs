//! ASPM: the files of a link below `/sys`.

use std::fs::File;
use std::io::Read;

pub use device::aspm::{Aspm, l1_exit_us};

use super::root::Root;

/// States that a link may be in, by the names of their files; both ends have to have them.
const STATES: [(&str, &str); 4] =
    [("l0s_aspm", "L0s"), ("l1_aspm", "L1"), ("l1_1_aspm", "L1.1"), ("l1_2_aspm", "L1.2")];

/// Reads that of the PCI device in a directory of a network device; `None`: the kernel shows none.
pub(super) fn read_aspm(root: &Root, directory: &str) -> Option<Aspm> {
    let link = format!("{directory}/device/link");
    let states = STATES
        .iter()
        .filter_map(|(file, name)| Some((root.number(&format!("{link}/{file}"))?, *name)));
    let states: Vec<_> = states.collect();
    if states.is_empty() {
        return None;
    }
    let states: Vec<_> = states.into_iter().filter(|(on, _)| *on != 0).map(|(_, it)| it).collect();
    // The parent of the device is the other end of its link. Neither is asked needlessly.
    let exits =
        || Some(exit_of(root, directory, "device")?.max(exit_of(root, directory, "device/..")?));
    let l1_exit_us = if states.last() == Some(&"L1") { exits() } else { None };
    Some(Aspm { policy: policy(root), states, l1_exit_us })
}

fn exit_of(root: &Root, directory: &str, end: &str) -> Option<u32> {
    let mut config = Vec::new();
    let file = File::open(root.path(&format!("{directory}/{end}/config"))).ok()?;
    // Capabilities are in the first 256 bytes; the rest would be asked of the device for nothing.
    file.take(256).read_to_end(&mut config).ok()?;
    l1_exit_us(&config)
}

fn policy(root: &Root) -> Option<String> {
    let text = root.word("sys/module/pcie_aspm/parameters/policy")?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}
