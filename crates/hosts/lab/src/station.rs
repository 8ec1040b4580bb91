//! Who is who on the wire of a lab, and how a host becomes one of them.

pub use network::station::{IPV4_PREFIX, IPV6_PREFIX, Station, ipv4};
use sys::netlink::{LinkSettings, Netlink, NetlinkError};

/// Makes the interface of `station` a part of its network: configured, up and addressed. A kernel
/// without IPv6 is no error: IPv4 alone still makes a lab.
pub(crate) fn join(
    station: &Station,
    netlink: &Netlink,
    settings: &LinkSettings,
) -> Result<(), NetlinkError> {
    let interface = station.interface();
    netlink.configure(&interface, settings)?;
    netlink.silence_ipv6(&interface)?;
    netlink.up(&interface)?;
    for (ip, prefix) in station.addresses() {
        match netlink.add_address(&interface, ip, prefix) {
            Err(error) if ip.is_ipv6() && error.is_no_ipv6() => {}
            outcome => outcome?,
        }
    }
    Ok(())
}
