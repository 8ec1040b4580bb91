//! Addresses of endpoints as text.

use mx::address::Address;
use mx_io::port::{PortSpec, udp};

/// An address as users of this port write it.
pub(super) fn display(port: &PortSpec, address: Address) -> String {
    match port {
        PortSpec::Udp(_) | PortSpec::UdpOn { .. } => {
            format!("{}/{}", udp::socket_address(address.nic), address.endpoint)
        }
        PortSpec::Packet { .. } | PortSpec::Virtio(_) => address.to_string(),
    }
}
