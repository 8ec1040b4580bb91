//! What a device has carried, dropped and complained of.

use std::collections::BTreeMap;

use super::error::DeviceError;
use super::root::{Root, directory_of};

/// The counters of `/sys/class/net/DEV/statistics` by name, such as `rx_packets`. A file that is no
/// number is left out.
pub fn read_statistics(root: &Root, device: &str) -> Result<BTreeMap<String, u64>, DeviceError> {
    let directory = format!("{}/statistics", directory_of(device)?);
    let number = |name: String| {
        let value = root.number(&format!("{directory}/{name}"))?;
        Some((name, value))
    };
    Ok(root.list(&directory)?.into_iter().filter_map(number).collect())
}
