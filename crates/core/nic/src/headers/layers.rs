//! The layers of a frame, from the outside in. Each function is given the bytes that are left and
//! returns all headers at once: on the way of an ordinary packet, fields live in registers and are
//! written once. From [`parse`] through IPv4 to the ports that way is always inlined, since a call
//! in between packs the fields and unpacks them again: up to 30 instructions.

use super::*;

/// Reads the headers of `frame`, an Ethernet frame from its destination address to its last byte,
/// without FCS.
///
/// # Errors
///
/// [`Malformed`] when a header does not fit the frame or contradicts itself.
#[inline(always)]
pub fn parse(frame: &[u8]) -> Result<Headers, Malformed> {
    let (ethernet, payload) =
        frame.split_first_chunk::<ETHERNET_LENGTH>().ok_or(Malformed::EthernetTruncated)?;
    let length = frame.len().try_into().unwrap_or(u16::MAX);
    let behind = |ether_type| Ethernet { length, ether_type, vlan_priority: 0, facts: Facts::NONE };
    let ether_type = [ethernet[12], ethernet[13]];
    // The usual packet first, by the bytes as they are.
    if ether_type == ETHER_TYPE_IPV4.to_be_bytes() {
        return behind(ETHER_TYPE_IPV4).ipv4(payload);
    }
    behind(u16::from_be_bytes(ether_type)).network(payload)
}

/// What the Ethernet header says.
#[derive(Clone, Copy)]
struct Ethernet {
    length: u16,
    ether_type: u16,
    vlan_priority: u8,
    facts: Facts,
}

/// What the IP header says, behind any extensions.
#[derive(Clone, Copy)]
struct Ip {
    dscp: u8,
    protocol: u8,
    facts: Facts,
    addresses: Addresses,
}

/// What the TCP or UDP header says.
#[derive(Clone, Copy)]
struct Transport {
    source: u16,
    destination: u16,
    facts: Facts,
}

impl Ip {
    #[inline(always)]
    fn v4(header: &[u8; 20], facts: Facts) -> Self {
        let [.., a, b, c, d, e, f, g, h] = *header;
        let addresses = Addresses::V4([a, b, c, d, e, f, g, h]);
        Self { dscp: header[1] >> 2, protocol: header[9], facts, addresses }
    }
}

impl Ethernet {
    /// Skips VLAN tags, the first of which is known to be there.
    #[cold]
    fn tagged(mut self, mut rest: &[u8]) -> Result<Headers, Malformed> {
        for _ in 0..MAX_STACK {
            let (tag, behind) = rest.split_first_chunk::<4>().ok_or(Malformed::VlanTruncated)?;
            if !self.facts.contains(Facts::VLAN) {
                self.vlan_priority = tag[0] >> 5;
                self.facts = Facts::VLAN;
            }
            self.ether_type = u16::from_be_bytes([tag[2], tag[3]]);
            rest = behind;
            if !matches!(self.ether_type, VLAN_C | VLAN_S | VLAN_OLD) {
                return self.network(rest);
            }
        }
        Err(Malformed::VlanStack)
    }

    /// What follows the EtherType.
    #[inline(never)]
    fn network(self, payload: &[u8]) -> Result<Headers, Malformed> {
        match self.ether_type {
            ETHER_TYPE_IPV4 => self.ipv4(payload),
            VLAN_C | VLAN_S | VLAN_OLD => self.tagged(payload),
            ETHER_TYPE_IPV6 => self.ipv6(payload),
            MX_ETHER_TYPE => self.mx(payload),
            _ => Ok(self.headers()),
        }
    }

    /// RFC 791 section 3.1.
    #[inline(always)]
    fn ipv4(self, packet: &[u8]) -> Result<Headers, Malformed> {
        let header = packet.first_chunk::<20>().ok_or(Malformed::Ipv4Truncated)?;
        // Version 4, and the header's length in words of 4 bytes.
        match header[0] {
            0x45..=0x4f => {}
            0x40..=0x44 => return Err(Malformed::Ipv4HeaderLength),
            _ => return Err(Malformed::Ipv4Version),
        }
        let header_length = usize::from(header[0] & 0x0f) * 4;
        let total_length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let payload = packet.get(header_length..total_length).ok_or(Malformed::Ipv4TotalLength)?;

        // Three flags and the offset: only "more fragments" and the offset make a fragment.
        if u16::from_ne_bytes([header[6], header[7]]) & u16::from_be(0x3fff) != 0 {
            return self.fragment(header, payload);
        }
        self.transport(Ip::v4(header, Facts::NONE), payload)
    }

    /// A fragment of an IPv4 packet; only the first one has ports.
    #[cold]
    fn fragment(self, header: &[u8; 20], payload: &[u8]) -> Result<Headers, Malformed> {
        let ip = Ip::v4(header, Facts::FRAGMENT);
        match u16::from_be_bytes([header[6], header[7]]) & 0x1fff {
            0 => self.transport(ip, payload),
            _ => Ok(self.ip(ip, Transport::NONE)),
        }
    }

    /// RFC 8200 sections 3 and 4.
    #[inline(never)] // Its addresses are large: kept away from the usual packet.
    fn ipv6(self, packet: &[u8]) -> Result<Headers, Malformed> {
        let (header, payload) = packet.split_first_chunk::<40>().ok_or(Malformed::Ipv6Truncated)?;
        if header[0] >> 4 != 6 {
            return Err(Malformed::Ipv6Version);
        }
        let payload_length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let mut payload = payload.get(..payload_length).ok_or(Malformed::Ipv6PayloadLength)?;

        let [_, _, _, _, _, _, _, _, addresses @ ..] = *header;
        let mut ip = Ip {
            dscp: (header[0] & 0x0f) << 2 | header[1] >> 6,
            protocol: header[6],
            facts: Facts::NONE,
            addresses: Addresses::V6(addresses),
        };
        for _ in 0..=MAX_STACK {
            if !matches!(
                ip.protocol,
                HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION_OPTIONS
            ) {
                return self.transport(ip, payload);
            }
            let extension = payload.first_chunk::<8>().ok_or(Malformed::Ipv6ExtensionTruncated)?;
            let length = match ip.protocol {
                FRAGMENT => 8,
                AUTHENTICATION => (usize::from(extension[1]) + 2) * 4,
                _ => (usize::from(extension[1]) + 1) * 8,
            };
            payload = payload.get(length..).ok_or(Malformed::Ipv6ExtensionTruncated)?;
            if ip.protocol == FRAGMENT {
                // Offset in the high 13 bits, "more fragments" in the lowest. With neither it is
                // an atomic fragment (RFC 6946): a whole packet.
                let fragment = u16::from_be_bytes([extension[2], extension[3]]);
                ip.facts = ip.facts.with(Facts::FRAGMENT.when(fragment & 0xfff9 != 0));
                if fragment & 0xfff8 != 0 {
                    ip.protocol = extension[0];
                    return Ok(self.ip(ip, Transport::NONE));
                }
            }
            ip.protocol = extension[0];
        }
        Err(Malformed::Ipv6ExtensionStack)
    }

    #[inline]
    fn mx(self, payload: &[u8]) -> Result<Headers, Malformed> {
        let header =
            payload.first_chunk::<{ MX_ENDPOINT_OFFSET + 1 }>().ok_or(Malformed::MxTruncated)?;
        let mark = Facts::MX_MARK.when(header[MX_FLAGS_OFFSET] & MX_FLAG_MARK != 0);
        Ok(Headers {
            facts: self.facts.with(Facts::MX).with(mark),
            mx_endpoint: header[MX_ENDPOINT_OFFSET],
            ..self.headers()
        })
    }

    /// The first bytes of the upper layer: RFC 9293 section 3.1, RFC 768.
    #[inline(always)]
    fn transport(self, ip: Ip, payload: &[u8]) -> Result<Headers, Malformed> {
        if ip.protocol == TCP {
            let header = payload.first_chunk::<20>().ok_or(Malformed::TcpTruncated)?;
            let header_length = usize::from(header[12] >> 4) * 4;
            if header_length < header.len() || header_length > payload.len() {
                return Err(Malformed::TcpTruncated);
            }
            let psh = Facts::TCP_PSH.when(header[13] & TCP_FLAG_PSH != 0);
            return Ok(self.ip(ip, Transport::new(header, Facts::TCP_PORTS.with(psh))));
        }
        match ip.protocol {
            UDP => {
                let header = payload.first_chunk::<8>().ok_or(Malformed::UdpTruncated)?;
                Ok(self.ip(ip, Transport::new(header, Facts::UDP_PORTS)))
            }
            _ => Ok(self.ip(ip, Transport::NONE)),
        }
    }

    /// The headers of an IP packet.
    #[inline]
    fn ip(self, ip: Ip, transport: Transport) -> Headers {
        let Self { length, ether_type, vlan_priority, facts } = self;
        let Transport { source, destination, .. } = transport;
        Headers {
            values: [length, ether_type, vlan_priority.into(), ip.dscp.into(), source, destination],
            facts: facts.with(Facts::IP).with(ip.facts).with(transport.facts),
            protocol: ip.protocol,
            mx_endpoint: 0,
            addresses: ip.addresses,
        }
    }

    /// The headers of a frame of which no more is known.
    #[inline]
    fn headers(self) -> Headers {
        let Self { length, ether_type, vlan_priority, facts } = self;
        Headers {
            values: [length, ether_type, vlan_priority.into(), 0, 0, 0],
            facts,
            protocol: 0,
            mx_endpoint: 0,
            addresses: Addresses::None,
        }
    }
}

impl Transport {
    const NONE: Self = Self { source: 0, destination: 0, facts: Facts::NONE };

    /// Both protocols begin with the ports.
    #[inline]
    const fn new<const N: usize>(header: &[u8; N], facts: Facts) -> Self {
        // Both at once, the source in the lower half: as they are stored.
        let ports = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        let ports = ports.rotate_left(16);
        Self { source: ports as u16, destination: (ports >> 16) as u16, facts }
    }
}
