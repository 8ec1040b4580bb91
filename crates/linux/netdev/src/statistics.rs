//! What a device has carried: its files below `/sys`.

use std::collections::BTreeMap;

use super::error::DeviceError;
use super::root::{Root, directory_of};

/// The counters of `/sys/class/net/DEV/statistics` by name, such as `rx_packets`. A file that is no
/// number is left out.
pub fn read_statistics(root: &Root, device: &str) -> Result<BTreeMap<String, u64>, DeviceError> {
    let directory = directory_of(device)?;
    root.list(&format!("{directory}/statistics"))?;
    Ok(device::read_statistics(root, &directory))
}
