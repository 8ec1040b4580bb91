//! Ports and peers as text.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::str::FromStr;

use linux::mx::port::packet::{PacketPort, PacketSettings};
use linux::mx::port::udp::{self, UdpPort, UdpSettings, nic_id};
use linux::mx::port::virtio::VirtioPort;
use linux::mx::port::{NicId, Port, PortError};
use linux::vhost::driver::DriverSettings;
use mx::address::Address;

/// A way for frames to travel: `packet:IFACE`, `udp:ADDR:PORT` or `virtio:SOCKET`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Through an Ethernet interface.
    Packet(String),
    /// In datagrams from this address.
    Udp(SocketAddrV4),
    /// Onto the NIC that has this socket.
    Virtio(PathBuf),
}

impl Place {
    /// Opens the port of an endpoint.
    pub(crate) fn open(&self, endpoint: u8) -> Result<Box<dyn Port>, PortError> {
        Ok(match self {
            Self::Packet(name) => {
                Box::new(PacketPort::open(name, endpoint, &PacketSettings::default())?)
            }
            Self::Udp(local) => {
                let settings = UdpSettings { local: *local, ..UdpSettings::new(*local.ip()) };
                Box::new(UdpPort::open(endpoint, &settings)?)
            }
            Self::Virtio(path) => {
                Box::new(VirtioPort::connect(path, endpoint, DriverSettings::default())?)
            }
        })
    }
}

impl Place {
    /// The address of an endpoint of this port as [`Whereabouts`] would have it.
    pub(crate) fn tell(&self, address: Address) -> String {
        match self {
            Self::Udp(_) => format!("{}/{}", udp::socket_address(address.nic), address.endpoint),
            Self::Packet(_) | Self::Virtio(_) => address.to_string(),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what| {
            format!(
                "`{text}`: {what}; a port is packet:IFACE, such as packet:eth0, udp:ADDR:PORT, \
                 such as udp:10.0.0.1:9000, or virtio:SOCKET"
            )
        };
        match text.split_once(':') {
            Some(("packet", name)) if !name.is_empty() => Ok(Self::Packet(name.to_owned())),
            Some(("udp", address)) => socket_address(address)
                .map(Self::Udp)
                .ok_or_else(|| wrong("what follows udp: is no IPv4 address and port")),
            Some(("virtio", path)) if !path.is_empty() => Ok(Self::Virtio(path.into())),
            Some(("packet" | "virtio", _)) => Err(wrong("nothing follows the colon")),
            _ => Err(wrong("no such kind of port")),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(name) => write!(f, "packet:{name}"),
            Self::Udp(address) => write!(f, "udp:{address}"),
            Self::Virtio(path) => write!(f, "virtio:{}", path.display()),
        }
    }
}

/// An IPv4 address and a port, or an address alone, whose port is any that is free.
fn socket_address(text: &str) -> Option<SocketAddrV4> {
    let alone = || text.parse::<Ipv4Addr>().ok().map(|ip| SocketAddrV4::new(ip, 0));
    text.parse().ok().or_else(alone)
}

/// Where an endpoint is: `02:00:00:00:00:01/3`, or `10.0.0.1:9000/3` where frames travel in UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whereabouts(pub(crate) Address);

impl FromStr for Whereabouts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no endpoint; write MAC/ENDPOINT, such as 02:00:00:00:00:01/3, or for \
                 UDP ADDR:PORT/ENDPOINT, such as 10.0.0.1:9000/3; endpoints are 0 to 255"
            )
        };
        let (nic, endpoint) = text.rsplit_once('/').ok_or_else(wrong)?;
        let nic = mac(nic).or_else(|| nic.parse().ok().map(nic_id)).ok_or_else(wrong)?;
        Ok(Self(Address { nic, endpoint: endpoint.parse().map_err(|_| wrong())? }))
    }
}

fn mac(text: &str) -> Option<NicId> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next().filter(|part| (1..=2).contains(&part.len()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(NicId(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read() {
        for text in ["packet:eth0", "udp:10.0.0.1:9000", "virtio:/tmp/a.sock"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        let text = "02:00:00:00:0a:01/3";
        assert_eq!(text.parse::<Whereabouts>().unwrap().0.to_string(), text);
        let in_udp: Whereabouts = "10.9.0.1:9000/200".parse().unwrap();
        assert_eq!(in_udp.0.to_string(), "0a:09:00:01:23:28/200");
        let place: Place = "udp:10.9.0.1".parse().unwrap();
        assert_eq!(place.tell(in_udp.0), "10.9.0.1:9000/200");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "eth0", "packet:", "udp:", "udp:9000", "udp:[::1]:5", "virtio:", "tcp:1"] {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.contains("packet:eth0"), "{error}");
        }
        for text in ["", "02:00:00:00:00:01", "02:00:00:00:00/3", "02:00:00:00:00:01/256", "x/1"] {
            assert!(text.parse::<Whereabouts>().is_err(), "{text}");
        }
    }
}
