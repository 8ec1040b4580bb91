//! What sets up devices at boot ([`device::setters`]), for the devices of this machine.

pub use device::setters::*;

use crate::root::Root;

/// What files ask for of a device of this machine. For files of another machine it has no number.
pub fn read_traits(root: &Root, name: &str) -> Traits {
    let file = |file: &str| format!("sys/class/net/{name}/{file}");
    // 0: the address is its own, not one that a program has given it.
    let is_own = root.number(&file("addr_assign_type")) == Some(0);
    Traits {
        name: name.to_owned(),
        address: root.word(&file("address")).filter(|_| is_own),
        driver: root.link_name(&file("device/driver")),
        number: root.number(&file("ifindex")),
    }
}
