//! Virtualisation: whether there is another machine below this one, and walls around us.

use serde::Serialize;

use super::kernel::KernelFiles;

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

/// Finds out what this system runs in.
pub fn read_virtualisation(files: &dyn KernelFiles) -> Virtualisation {
    let dmi = |name: &str| files.word(&format!("sys/class/dmi/id/{name}"));
    let product: Vec<String> =
        [dmi("sys_vendor"), dmi("product_name")].into_iter().flatten().collect();
    let hypervisor = files.word("sys/hypervisor/type").or_else(|| {
        let tree = files.word("proc/device-tree/hypervisor/compatible")?;
        Some(tree.trim_end_matches('\0').rsplit(',').next()?.to_owned())
    });
    let flag = files.text("proc/cpuinfo").ok().and_then(|text| parse_cpuinfo(&text));
    Virtualisation {
        is_guest: flag.or(hypervisor.as_ref().map(|_| true)),
        product: Some(product.join(" ")).filter(|text| !text.is_empty()),
        hypervisor,
        container: container(files),
    }
}

fn container(files: &dyn KernelFiles) -> Option<String> {
    if let Some(name) = files.word("run/systemd/container") {
        return Some(name);
    }
    let marks = [(".dockerenv", "docker"), ("run/.containerenv", "podman")];
    marks.into_iter().find(|(file, _)| files.has(file)).map(|(_, name)| name.to_owned())
}
