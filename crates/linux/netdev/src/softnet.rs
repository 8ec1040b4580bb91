//! The softirq that receives, and its limits: files below `/proc`.

pub use device::softnet::{Softnet, SoftnetLimits, parse_softnet, read_limits};

use super::error::DeviceError;
use super::root::Root;

/// What each processor has done.
pub fn read_softnet(root: &Root) -> Result<Vec<Softnet>, DeviceError> {
    let path = "proc/net/softnet_stat";
    let text = root.read(path)?;
    parse_softnet(&text).ok_or_else(|| root.malformed(path))
}
