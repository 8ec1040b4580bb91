//! Whether an interface divides TCP into segments late, in hardware or right before it.

use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketType, socket};
use sys::ethtool::{Control, TCP_SEGMENTATION};

/// Whether it does. If it cannot be asked, it is taken to: most do.
pub(super) fn segments_late(interface: u32) -> bool {
    ask(interface).unwrap_or(true)
}

fn ask(interface: u32) -> Option<bool> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    let name = index_to_name(&socket, interface).ok()?;
    let mut value = [TCP_SEGMENTATION, 0];
    Control::open().ok()?.ethtool(&name, &mut value).ok()?;
    Some(value[1] != 0)
}
