//! Errors of ports.

use std::io;

use sys::netlink::NetlinkError;
#[cfg(feature = "virtio")]
use vhost::driver::DriverError;

/// Why a port cannot be opened, or does not work any more.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A setting is out of range.
    #[error("open a port on {port} with {what}: out of range; use {range}")]
    Setting {
        /// The interface or address.
        port: String,
        /// The setting and its value.
        what: String,
        /// What it may be.
        range: &'static str,
    },
    /// The kernel gave no socket that can send and receive frames.
    #[error(
        "open a packet socket on {port}: {cause}; run as root or with CAP_NET_RAW, or use udp:{port}"
    )]
    NotAllowed {
        /// The name of the interface.
        port: String,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// The interface has no Ethernet address.
    #[error("open a port on {port}: not an Ethernet interface; find one with: ip -brief link")]
    NotEthernet {
        /// The name of the interface.
        port: String,
    },
    /// The interface has no IPv4 address.
    #[error("open a port on {port}: no IPv4 address; add one: ip address add ADDR/24 dev {port}")]
    NoAddress {
        /// The name of the interface.
        port: String,
    },
    /// Another process, or this one, has the endpoint.
    #[error("open endpoint {endpoint} of {port}: it is taken{}; use another number", by(*.holder))]
    Taken {
        /// The number of the endpoint.
        endpoint: u8,
        /// The name of the interface.
        port: String,
        /// Who has it, if that can be seen from here.
        holder: Option<u32>,
    },
    /// The interface is down. When it is up again, the port works again.
    #[error(
        "{operation} through {port}: the interface is down; bring it up: ip link set {port} up"
    )]
    Down {
        /// What was tried.
        operation: &'static str,
        /// The name of the interface.
        port: String,
    },
    /// The interface does not exist any more. This port will never work again.
    #[error("{operation} through {port}: the interface is gone; open the endpoint anew on another")]
    Gone {
        /// What was tried.
        operation: &'static str,
        /// The name of the interface.
        port: String,
    },
    /// The MTU of the interface is smaller than it was.
    #[error(
        "send through {port}: a frame is longer than the MTU, which was {mtu} when the port was \
         opened; set it back: ip link set {port} mtu {mtu}"
    )]
    Shrunk {
        /// The name of the interface.
        port: String,
        /// What its MTU was, in bytes.
        mtu: u16,
    },
    /// The kernel refused something else.
    #[error("{operation} on {port}: {cause}; {remedy}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// The interface or address.
        port: String,
        /// What the kernel said.
        #[source]
        cause: io::Error,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The interface could not be looked at.
    #[error(transparent)]
    Link(#[from] NetlinkError),
    /// The NIC behind the port says no, or is gone.
    #[cfg(feature = "virtio")]
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl PortError {
    /// Turns what the kernel said into an error of `operation`.
    pub(super) fn system(
        operation: &'static str,
        port: &str,
        remedy: &'static str,
    ) -> impl Fn(io::Error) -> Self {
        move |cause| Self::System { operation, port: port.to_owned(), cause, remedy }
    }
}

fn by(holder: Option<u32>) -> String {
    holder.map_or_else(String::new, |pid| format!(" by process {pid}"))
}
