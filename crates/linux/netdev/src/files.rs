//! A device as the kernel's files show it, in one go.

pub use device::{DeviceFiles, read_machine};

use super::error::DeviceError;
use super::root::{Root, directory_of, names_in_proc_net_dev};

/// Reads a device. What the kernel or this user's rights keep back is `None` or empty.
pub fn read_device(root: &Root, device: &str) -> Result<DeviceFiles, DeviceError> {
    let path = format!("{}/ifindex", directory_of(device)?);
    let found = root.read(&path)?.trim().parse::<u32>().ok();
    let found = found.and_then(|_| device::read_device(root, device));
    found.ok_or_else(|| root.malformed(&path))
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
