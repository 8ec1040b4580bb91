//! Virtualisation: whether there is another machine below this one, and walls around us.

use serde::Serialize;

/// What this system runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Virtualisation {
    /// Whether the processor says that it is virtual; `None` if it says nothing either way.
    pub is_guest: Option<bool>,
    /// Who has made the machine, and what it is called, such as `QEMU Standard PC`.
    pub product: Option<String>,
    /// The hypervisor, such as `xen` or `kvm`, where the kernel names it.
    pub hypervisor: Option<String>,
    /// The container that we are in, such as `docker`.
    pub container: Option<String>,
}

/// Whether `/proc/cpuinfo` has the flag of virtual processors; `None` if there are no flags, as on
/// processors that are not x86.
pub fn parse_cpuinfo(text: &str) -> Option<bool> {
    let flags = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "flags").then_some(value)
    })?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}
