//! The softirq that receives, and its limits: files below `/proc`.

pub use device::softnet::{Softnet, SoftnetLimits, parse_softnet};

use super::error::DeviceError;
use super::root::Root;

/// What each processor has done.
pub fn read_softnet(root: &Root) -> Result<Vec<Softnet>, DeviceError> {
    let path = "proc/net/softnet_stat";
    let text = root.read(path)?;
    parse_softnet(&text).ok_or_else(|| root.malformed(path))
}

/// The limits, from `/proc/sys/net/core`.
pub fn read_limits(root: &Root) -> SoftnetLimits {
    let number = |name: &str| root.number(&format!("proc/sys/net/core/{name}"));
    SoftnetLimits {
        netdev_budget: number("netdev_budget"),
        netdev_budget_usecs: number("netdev_budget_usecs"),
        dev_weight: number("dev_weight"),
        netdev_max_backlog: number("netdev_max_backlog"),
        gro_normal_batch: number("gro_normal_batch"),
        busy_poll: number("busy_poll"),
        busy_read: number("busy_read"),
        rps_sock_flow_entries: number("rps_sock_flow_entries"),
    }
}
