//! Ports by their names, as users write them.

use std::fmt;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::str::FromStr;

use super::local::LocalPort;
use super::packet::{PacketPort, PacketSettings};
use super::udp::UdpSettings;
use super::virtio::VirtioPort;
use super::{Port, PortError};
use crate::vhost::driver::DriverSettings;

/// Which port to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortSpec {
    /// An Ethernet interface.
    Packet {
        /// Its name.
        interface: String,
        /// How to use it.
        settings: PacketSettings,
        /// Whether endpoints of this host that are on it, too, can be reached.
        local: bool,
        /// Whether frames of large messages go in datagrams where that is possible.
        lane: bool,
    },
    /// Datagrams.
    Udp(UdpSettings),
    /// A NIC of ours.
    Virtio(PathBuf),
}

/// What follows an interface that is to have a lane.
const LANE: &str = "+udp";

impl FromStr for PortSpec {
    type Err = String;

    /// `packet:IFACE`, `packet:IFACE+udp`, `udp:ADDR:PORT` or `virtio:SOCKET`.
    fn from_str(text: &str) -> Result<Self, String> {
        let usage = "use packet:IFACE, udp:ADDR:PORT or virtio:SOCKET";
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "packet" | "udp" | "virtio" if rest.is_empty() => {
                Err(format!("port `{text}` does not say where; {usage}"))
            }
            "packet" => {
                let settings = PacketSettings::default();
                let (interface, lane) = match rest.strip_suffix(LANE) {
                    Some(interface) => (interface.to_owned(), true),
                    None => (rest.to_owned(), false),
                };
                Ok(Self::Packet { interface, settings, local: true, lane })
            }
            "udp" => {
                // Without a port, it is any that is free.
                let alone = || rest.parse().ok().map(|ip| SocketAddrV4::new(ip, 0));
                let local = rest.parse().ok().or_else(alone).ok_or_else(|| {
                    format!("port `{text}`: `{rest}` is no IPv4 address with a port; {usage}")
                })?;
                Ok(Self::Udp(UdpSettings { local, ..UdpSettings::new(*local.ip()) }))
            }
            "virtio" => Ok(Self::Virtio(rest.into())),
            _ => Err(format!("no kind of port is called `{kind}`; {usage}")),
        }
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet { interface, lane, .. } => {
                write!(f, "packet:{interface}{}", if *lane { LANE } else { "" })
            }
            Self::Udp(settings) => write!(f, "udp:{}", settings.local),
            Self::Virtio(socket) => write!(f, "virtio:{}", socket.display()),
        }
    }
}

/// Opens a port for `endpoint` in the network of this thread.
///
/// # Errors
/// As the port of that kind says.
pub fn open(spec: &PortSpec, endpoint: u8) -> Result<Box<dyn Port>, PortError> {
    Ok(match spec {
        PortSpec::Packet { interface, settings, lane: true, .. } => {
            Box::new(LocalPort::with_lane(interface, endpoint, settings)?)
        }
        PortSpec::Packet { interface, settings, local: true, .. } => {
            Box::new(LocalPort::open(interface, endpoint, settings)?)
        }
        PortSpec::Packet { interface, settings, local: false, .. } => {
            Box::new(PacketPort::open(interface, endpoint, settings)?)
        }
        PortSpec::Udp(settings) => Box::new(LocalPort::over_udp(endpoint, settings)?),
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
        for name in ["packet:eth0", "packet:eth0+udp", "udp:10.9.0.1:9000", "virtio:/run/nic.sock"]
        {
            assert_eq!(name.parse::<PortSpec>().unwrap().to_string(), name);
        }
        assert_eq!("udp:10.9.0.1".parse::<PortSpec>().unwrap().to_string(), "udp:10.9.0.1:0");
        let error = |text: &str| text.parse::<PortSpec>().unwrap_err();
        assert!(error("tcp:eth0").starts_with("no kind of port is called `tcp`; use packet:"));
        assert!(error("packet").contains("does not say where"));
        assert!(error("udp:eth0").contains("`eth0` is no IPv4 address with a port"));
    }
}
