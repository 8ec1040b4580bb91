//! What this system runs in, by files below `/sys`, `/proc` and beside them.

pub use device::virtualisation::{Virtualisation, parse_cpuinfo};

use super::root::Root;

/// Finds out what this system runs in.
pub fn read_virtualisation(root: &Root) -> Virtualisation {
    let dmi = |name: &str| root.word(&format!("sys/class/dmi/id/{name}"));
    let product: Vec<String> =
        [dmi("sys_vendor"), dmi("product_name")].into_iter().flatten().collect();
    let hypervisor = root.word("sys/hypervisor/type").or_else(|| {
        let tree = root.word("proc/device-tree/hypervisor/compatible")?;
        Some(tree.trim_end_matches('\0').rsplit(',').next()?.to_owned())
    });
    let flag = root.read("proc/cpuinfo").ok().and_then(|text| parse_cpuinfo(&text));
    Virtualisation {
        is_guest: flag.or(hypervisor.as_ref().map(|_| true)),
        product: Some(product.join(" ")).filter(|text| !text.is_empty()),
        hypervisor,
        container: container(root),
    }
}

fn container(root: &Root) -> Option<String> {
    if let Some(name) = root.word("run/systemd/container") {
        return Some(name);
    }
    let marks = [(".dockerenv", "docker"), ("run/.containerenv", "podman")];
    marks.into_iter().find(|(file, _)| root.has(file)).map(|(_, name)| name.to_owned())
}
