//! Ports by their names, as users write them.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
#[cfg(feature = "virtio")]
use std::path::PathBuf;
use std::str::FromStr;

use super::local::LocalPort;
#[cfg(feature = "virtio")]
use super::virtio::VirtioPort;
use super::{Port, PortError};
use sys::netlink::Netlink;
#[cfg(feature = "virtio")]
use vhost::driver::DriverSettings;

/// Which port to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortSpec {
    /// An Ethernet interface.
    Packet {
        /// The name of the interface.
        interface: String,
        /// Whether the data of long messages go over TCP where that is possible.
        tcp_bulk: bool,
    },
    /// Datagrams, from this address of the host; its port is 0 for any that is free.
    Udp(SocketAddrV4),
    /// Datagrams, from the address of an interface: the same words on each host of a cluster.
    UdpOn {
        /// The name of the interface.
        interface: String,
        /// The UDP port; 0 is any that is free.
        port: u16,
    },
    /// A NIC of ours.
    #[cfg(feature = "virtio")]
    Virtio(PathBuf),
}

/// What follows an interface that is to have TCP connections for bulk data.
const TCP_BULK: &str = "+tcp";

#[cfg(feature = "virtio")]
const USAGE: &str = "use packet:IFACE, packet:IFACE+tcp, udp:ADDR:PORT, udp:IFACE or virtio:SOCKET";
#[cfg(not(feature = "virtio"))]
const USAGE: &str = "use packet:IFACE, packet:IFACE+tcp, udp:ADDR:PORT or udp:IFACE";

impl FromStr for PortSpec {
    type Err = String;

    /// `packet:IFACE`, `packet:IFACE+tcp`, `udp:ADDR`, `udp:IFACE` or `virtio:SOCKET`; after
    /// `udp:`, a port may follow.
    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "packet" | "udp" | "virtio" if rest.is_empty() => {
                Err(format!("port `{text}` does not say where; {USAGE}"))
            }
            "packet" => {
                let (interface, tcp_bulk) = match rest.strip_suffix(TCP_BULK) {
                    Some(interface) => (interface.to_owned(), true),
                    None => (rest.to_owned(), false),
                };
                Ok(Self::Packet { interface, tcp_bulk })
            }
            "udp" => udp(rest).ok_or_else(|| {
                format!(
                    "port `{text}`: `{rest}` is no IPv4 address and no interface, with or \
                         without a port; {USAGE}"
                )
            }),
            #[cfg(feature = "virtio")]
            "virtio" => Ok(Self::Virtio(rest.into())),
            #[cfg(not(feature = "virtio"))]
            "virtio" => Err(format!("port `{text}`: this build has no virtio ports; {USAGE}")),
            _ => Err(format!("no kind of port is called `{kind}`; {USAGE}")),
        }
    }
}

/// What follows `udp:`. Without a port, it is any that is free.
fn udp(text: &str) -> Option<PortSpec> {
    let (place, port) = match text.rsplit_once(':') {
        Some((place, port)) => (place, port.parse().ok()?),
        None => (text, 0),
    };
    if let Ok(ip) = place.parse::<Ipv4Addr>() {
        return Some(PortSpec::Udp(SocketAddrV4::new(ip, port)));
    }
    is_name(place).then(|| PortSpec::UdpOn { interface: place.to_owned(), port })
}

/// Whether an interface may be called so (`dev_valid_name` of the kernel), other than a number.
fn is_name(text: &str) -> bool {
    /// Bytes of a name, at most (`IFNAMSIZ`, with a zero).
    const MAX_NAME: usize = 15;
    (1..=MAX_NAME).contains(&text.len())
        && text.contains(|c: char| c.is_ascii_alphabetic())
        && !text.contains(|c: char| c == '/' || c == ':' || c.is_whitespace())
}

impl PortSpec {
    /// Looks whether there is such a place in the network of this thread, and opens nothing.
    ///
    /// # Errors
    /// If there is not, or it is down.
    pub fn check(&self) -> Result<(), PortError> {
        match self {
            Self::Packet { interface, tcp_bulk } => {
                if *tcp_bulk {
                    address_of(interface)?;
                }
                let link = Netlink::open()?.link(interface)?;
                let port = interface.clone();
                // The loopback interface has an address of zeros.
                if link.mac.len() != MAC || link.mac == [0; MAC] {
                    return Err(PortError::NotEthernet { port });
                }
                if !link.is_up {
                    return Err(PortError::Down { operation: "open a port", port });
                }
            }
            Self::UdpOn { interface, .. } => drop(address_of(interface)?),
            Self::Udp(_) => {}
            #[cfg(feature = "virtio")]
            Self::Virtio(_) => {}
        }
        Ok(())
    }
}

const MAC: usize = 6;

fn address_of(interface: &str) -> Result<Ipv4Addr, PortError> {
    let address = Netlink::open()?.ipv4(interface)?;
    address.ok_or_else(|| PortError::NoAddress { port: interface.to_owned() })
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet { interface, tcp_bulk } => {
                write!(f, "packet:{interface}{}", if *tcp_bulk { TCP_BULK } else { "" })
            }
            Self::Udp(local) => write!(f, "udp:{local}"),
            Self::UdpOn { interface, port: 0 } => write!(f, "udp:{interface}"),
            Self::UdpOn { interface, port } => write!(f, "udp:{interface}:{port}"),
            #[cfg(feature = "virtio")]
            Self::Virtio(socket) => write!(f, "virtio:{}", socket.display()),
        }
    }
}

/// Opens a port for the first endpoint of `numbers` that is free, in the network of this thread.
///
/// # Errors
/// As [`open`] does: that of the last number, if all are taken.
///
/// # Panics
/// If there are no numbers.
pub fn open_free(
    spec: &PortSpec,
    numbers: impl IntoIterator<Item = u8>,
) -> Result<Box<dyn Port>, PortError> {
    let mut numbers = numbers.into_iter().peekable();
    loop {
        let number = numbers.next().expect("the last one ends the loop");
        match open(spec, number) {
            Err(PortError::Taken { .. }) if numbers.peek().is_some() => {}
            outcome => return outcome,
        }
    }
}

/// Opens a port for `endpoint` in the network of this thread.
pub fn open(spec: &PortSpec, endpoint: u8) -> Result<Box<dyn Port>, PortError> {
    Ok(match spec {
        PortSpec::Packet { interface, tcp_bulk: true } => {
            let address = address_of(interface)?;
            Box::new(LocalPort::with_tcp_bulk(interface, endpoint, address)?)
        }
        PortSpec::Packet { interface, .. } => Box::new(LocalPort::open(interface, endpoint)?),
        PortSpec::Udp(local) => Box::new(LocalPort::over_udp(endpoint, *local)?),
        PortSpec::UdpOn { interface, port } => {
            let local = SocketAddrV4::new(address_of(interface)?, *port);
            Box::new(LocalPort::over_udp(endpoint, local)?)
        }
        #[cfg(feature = "virtio")]
        PortSpec::Virtio(socket) => {
            Box::new(VirtioPort::connect(socket, endpoint, DriverSettings::default())?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        let udp = ["udp:10.9.0.1:9000", "udp:eth0", "udp:eth0:9000", "udp:eth0.7", "udp:0net"];
        for name in
            ["packet:eth0", "packet:eth0+tcp", "virtio:/run/nic.sock"].into_iter().chain(udp)
        {
            let spec = name.parse::<PortSpec>();
            if name.starts_with("virtio") && cfg!(not(feature = "virtio")) {
                assert!(spec.unwrap_err().contains("this build has no virtio ports"));
            } else {
                assert_eq!(spec.unwrap().to_string(), name);
            }
        }
        assert_eq!("udp:10.9.0.1".parse::<PortSpec>().unwrap().to_string(), "udp:10.9.0.1:0");
        let error = |text: &str| text.parse::<PortSpec>().unwrap_err();
        assert!(error("tcp:eth0").starts_with("no kind of port is called `tcp`; use packet:"));
        assert!(error("packet").contains("does not say where"));
        for text in
            ["udp:10.9.0", "udp:10.9.0.1:x", "udp::9", "udp:eth0:70000", "udp:a/b", "udp:[::1]:9"]
        {
            assert!(error(text).contains("is no IPv4 address and no interface"), "{text}");
        }
    }

    #[test]
    fn missing_interfaces_are_errors() {
        let check = |text: &str| text.parse::<PortSpec>().unwrap().check();
        let error = |text: &str| check(text).unwrap_err().to_string();
        assert!(check("udp:lo").is_ok() && check("udp:10.9.0.1").is_ok());
        assert!(error("udp:none0").contains("none0"));
        assert!(error("packet:none0").contains("none0"));
        let port = open(&"udp:lo".parse().unwrap(), 0).unwrap();
        assert_eq!(port.nic_id().0[..4], [127, 0, 0, 1]);
    }
}
