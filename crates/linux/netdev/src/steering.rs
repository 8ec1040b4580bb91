//! Steering: its files below `/sys`.

use device::cpus::{parse_mask, write_mask};
pub use device::steering::Steering;

use super::error::DeviceError;
use super::root::{Root, directory_of};

/// The steering of all queues of a device, receiving ones first.
///
/// Queues without it are there with no processors. A mask that cannot be read counts as none.
pub fn read_steering(root: &Root, device: &str) -> Result<Vec<Steering>, DeviceError> {
    let directory = format!("{}/queues", directory_of(device)?);
    root.list(&directory)?;
    Ok(device::steering::read_steering(root, &directory))
}

/// The processors whose packets a transmit queue sends (XPS); none: any. `None`: this kernel or
/// device does not have it, as one with a single queue.
pub fn read_xps(root: &Root, device: &str, queue: u32) -> Option<Vec<u32>> {
    parse_mask(&root.word(&xps_path(device, queue).ok()?)?)
}

/// Sets the processors of a transmit queue.
pub fn write_xps(root: &Root, device: &str, queue: u32, cpus: &[u32]) -> Result<(), DeviceError> {
    root.write(&xps_path(device, queue)?, &write_mask(cpus))
}

fn xps_path(device: &str, queue: u32) -> Result<String, DeviceError> {
    Ok(format!("{}/queues/tx-{queue}/xps_cpus", directory_of(device)?))
}
