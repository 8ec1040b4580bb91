//! What the NIC reads of a frame, in one pass.
//!
//! A marker rule and the choice of a queue look at a handful of header fields. [`parse`] finds them
//! all at once, so that the rest of the receive path never touches the frame again:
//!
//! ```text
//! Ethernet (14 bytes) -> VLAN tags (at most 8) -> IPv4 + options                 -> TCP, UDP
//!                                                 IPv6 + extensions (at most 8)  -> TCP, UDP
//!                                                 MX: flags, endpoint
//!                                                 anything else: opaque
//! ```
//!
//! Every step takes a checked slice of what is left, and IP's own length cuts off the padding of
//! short frames, so no lying field can lead outside the packet. A header that contradicts itself or
//! the frame is [`Malformed`], with the reason; what the NIC merely does not know (ARP, IEEE 802.3
//! length frames, ESP) is fine and opaque. A fragment after the first has no ports: what stands in
//! their place is somebody's data.
//!
//! Checksums are not looked at, and neither are jumbograms (RFC 2675): an IPv6 payload length of 0
//! means none.

use core::fmt;

/// The EtherType of MX frames: the one that Open-MX uses by default.
pub const MX_ETHER_TYPE: u16 = 0x86df;
/// Where the flags byte of an MX frame is, in bytes after the EtherType.
///
/// The flags have a byte of their own within the first 8 payload bytes, so the flexible filters of
/// stock NICs (a word at a small offset, under a mask) can match it too.
pub const MX_FLAGS_OFFSET: usize = 1;
/// Where the destination endpoint of an MX frame is, in bytes after the EtherType.
pub const MX_ENDPOINT_OFFSET: usize = 2;
/// The bit of the MX flags byte by which the sender marks a frame that completes something a host
/// waits for.
pub const MX_FLAG_MARK: u8 = 0x80;

/// How many VLAN tags, and how many IPv6 extension headers, a frame may stack.
pub const MAX_STACK: usize = 8;

/// The protocol number of TCP (IANA).
pub const TCP: u8 = 6;
/// The protocol number of UDP (IANA).
pub const UDP: u8 = 17;

const ETHERNET_LENGTH: usize = 14;
const ETHER_TYPE_IPV4: u16 = 0x0800;
const ETHER_TYPE_IPV6: u16 = 0x86dd;
const TCP_FLAG_PSH: u8 = 0x08;

// IPv6 extension headers (RFC 8200 section 4; RFC 4302 for AH). ESP is none: nothing behind it can
// be read.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

/// The fields of a frame that rules and queue choice use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Bytes of the frame: Ethernet header and padding included, FCS excluded.
    pub length: u32,
    /// EtherType behind any VLAN tags; below 0x600 it is an IEEE 802.3 length.
    pub ether_type: u16,
    /// Source and destination port of a TCP or UDP packet, unless it is a fragment after the first.
    pub ports: Option<(u16, u16)>,
    /// Priority of the outermost VLAN tag (IEEE 802.1Q PCP), 0 to 7.
    pub vlan_priority: Option<u8>,
    /// Differentiated services code point of an IP packet (RFC 2474), 0 to 63.
    pub dscp: Option<u8>,
    /// Protocol of an IP packet (IANA number), behind any IPv6 extension headers that could be
    /// read.
    pub protocol: Option<u8>,
    /// Destination endpoint of an MX frame.
    pub mx_endpoint: Option<u8>,
    /// The sender of this MX frame marked it.
    pub mx_mark: bool,
    /// The PSH flag of a TCP segment (RFC 9293 section 3.1).
    pub tcp_psh: bool,
    /// The IP packet is a fragment, the first one included.
    pub fragment: bool,
    /// Addresses of an IP packet.
    pub addresses: Addresses,
}

/// The addresses of an IP packet as they stand in its header: the source, then the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Not an IP packet.
    None,
    /// Two IPv4 addresses of 4 bytes.
    V4([u8; 8]),
    /// Two IPv6 addresses of 16 bytes.
    V6([u8; 32]),
}

/// Why a frame cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Malformed {
    /// Shorter than the 14 bytes of an Ethernet header.
    EthernetTruncated,
    /// The frame ends inside a VLAN tag.
    VlanTruncated,
    /// More than [`MAX_STACK`] VLAN tags.
    VlanStack,
    /// The frame ends inside the first 20 bytes of the IPv4 header.
    Ipv4Truncated,
    /// The EtherType says IPv4, the version field does not.
    Ipv4Version,
    /// The IPv4 header claims less than 20 bytes.
    Ipv4HeaderLength,
    /// The IPv4 total length is shorter than the header or longer than the frame.
    Ipv4TotalLength,
    /// The frame ends inside the 40 bytes of the IPv6 header.
    Ipv6Truncated,
    /// The EtherType says IPv6, the version field does not.
    Ipv6Version,
    /// The IPv6 payload length is longer than the frame.
    Ipv6PayloadLength,
    /// The IPv6 payload ends inside an extension header.
    Ipv6ExtensionTruncated,
    /// More than [`MAX_STACK`] IPv6 extension headers.
    Ipv6ExtensionStack,
    /// The IP payload ends inside the TCP header, or the header claims less than 20 bytes.
    TcpTruncated,
    /// The IP payload ends inside the UDP header.
    UdpTruncated,
    /// The frame ends before the MX endpoint byte.
    MxTruncated,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EthernetTruncated => "frame shorter than an Ethernet header",
            Self::VlanTruncated => "frame ends inside a VLAN tag",
            Self::VlanStack => "too many VLAN tags",
            Self::Ipv4Truncated => "frame ends inside the IPv4 header",
            Self::Ipv4Version => "IPv4 EtherType on another version",
            Self::Ipv4HeaderLength => "IPv4 header length below 20 bytes",
            Self::Ipv4TotalLength => "IPv4 total length does not fit the frame",
            Self::Ipv6Truncated => "frame ends inside the IPv6 header",
            Self::Ipv6Version => "IPv6 EtherType on another version",
            Self::Ipv6PayloadLength => "IPv6 payload length does not fit the frame",
            Self::Ipv6ExtensionTruncated => "packet ends inside an IPv6 extension header",
            Self::Ipv6ExtensionStack => "too many IPv6 extension headers",
            Self::TcpTruncated => "TCP header does not fit the packet",
            Self::UdpTruncated => "packet ends inside the UDP header",
            Self::MxTruncated => "frame ends inside the MX header",
        })
    }
}

impl core::error::Error for Malformed {}

/// Reads the headers of `frame`, an Ethernet frame from its destination address to its last byte,
/// without FCS.
///
/// # Errors
///
/// [`Malformed`] when a header does not fit the frame or contradicts itself.
#[inline]
pub fn parse(frame: &[u8]) -> Result<Headers, Malformed> {
    let (ethernet, payload) =
        frame.split_first_chunk::<ETHERNET_LENGTH>().ok_or(Malformed::EthernetTruncated)?;
    let mut headers = Headers {
        length: frame.len().try_into().unwrap_or(u32::MAX),
        ether_type: u16::from_be_bytes([ethernet[12], ethernet[13]]),
        ports: None,
        vlan_priority: None,
        dscp: None,
        protocol: None,
        mx_endpoint: None,
        mx_mark: false,
        tcp_psh: false,
        fragment: false,
        addresses: Addresses::None,
    };
    let payload = if is_vlan(headers.ether_type) { headers.vlan_tags(payload)? } else { payload };
    match headers.ether_type {
        ETHER_TYPE_IPV4 => headers.ipv4(payload)?,
        ETHER_TYPE_IPV6 => headers.ipv6(payload)?,
        MX_ETHER_TYPE => headers.mx(payload)?,
        _ => {}
    }
    Ok(headers)
}

/// 802.1Q, 802.1ad, and what was used for outer tags before 802.1ad.
#[inline]
const fn is_vlan(ether_type: u16) -> bool {
    matches!(ether_type, 0x8100 | 0x88a8 | 0x9100)
}

impl Headers {
    /// Reads the tags, of which the first EtherType is known, and returns what follows them.
    #[cold]
    fn vlan_tags<'f>(&mut self, mut rest: &'f [u8]) -> Result<&'f [u8], Malformed> {
        for _ in 0..MAX_STACK {
            let (tag, behind) = rest.split_first_chunk::<4>().ok_or(Malformed::VlanTruncated)?;
            self.vlan_priority.get_or_insert(tag[0] >> 5);
            self.ether_type = u16::from_be_bytes([tag[2], tag[3]]);
            rest = behind;
            if !is_vlan(self.ether_type) {
                return Ok(rest);
            }
        }
        Err(Malformed::VlanStack)
    }

    /// RFC 791 section 3.1.
    #[inline]
    fn ipv4(&mut self, packet: &[u8]) -> Result<(), Malformed> {
        let header = packet.first_chunk::<20>().ok_or(Malformed::Ipv4Truncated)?;
        if header[0] >> 4 != 4 {
            return Err(Malformed::Ipv4Version);
        }
        let header_length = usize::from(header[0] & 0x0f) * 4;
        if header_length < header.len() {
            return Err(Malformed::Ipv4HeaderLength);
        }
        let total_length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let payload = packet.get(header_length..total_length).ok_or(Malformed::Ipv4TotalLength)?;

        let [.., a, b, c, d, e, f, g, h] = *header;
        self.addresses = Addresses::V4([a, b, c, d, e, f, g, h]);
        self.dscp = Some(header[1] >> 2);
        self.protocol = Some(header[9]);
        // Three flags and the offset: only "more fragments" and the offset make a fragment.
        let fragment = u16::from_be_bytes([header[6], header[7]]);
        self.fragment = fragment & 0x3fff != 0;
        if fragment & 0x1fff == 0 { self.transport(header[9], payload) } else { Ok(()) }
    }

    /// RFC 8200 sections 3 and 4.
    fn ipv6(&mut self, packet: &[u8]) -> Result<(), Malformed> {
        let (header, payload) = packet.split_first_chunk::<40>().ok_or(Malformed::Ipv6Truncated)?;
        if header[0] >> 4 != 6 {
            return Err(Malformed::Ipv6Version);
        }
        let payload_length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let mut payload = payload.get(..payload_length).ok_or(Malformed::Ipv6PayloadLength)?;

        if let Some(addresses) = header.last_chunk() {
            self.addresses = Addresses::V6(*addresses);
        }
        self.dscp = Some((header[0] & 0x0f) << 2 | header[1] >> 6);
        let mut next = header[6];
        for _ in 0..=MAX_STACK {
            self.protocol = Some(next);
            if !matches!(
                next,
                HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION_OPTIONS
            ) {
                return self.transport(next, payload);
            }
            let extension = payload.first_chunk::<8>().ok_or(Malformed::Ipv6ExtensionTruncated)?;
            let length = match next {
                FRAGMENT => 8,
                AUTHENTICATION => (usize::from(extension[1]) + 2) * 4,
                _ => (usize::from(extension[1]) + 1) * 8,
            };
            payload = payload.get(length..).ok_or(Malformed::Ipv6ExtensionTruncated)?;
            if next == FRAGMENT {
                // Offset in the high 13 bits, "more fragments" in the lowest. With neither it is an
                // atomic fragment (RFC 6946): a whole packet.
                let fragment = u16::from_be_bytes([extension[2], extension[3]]);
                self.fragment = fragment & 0xfff9 != 0;
                if fragment & 0xfff8 != 0 {
                    self.protocol = Some(extension[0]);
                    return Ok(());
                }
            }
            next = extension[0];
        }
        Err(Malformed::Ipv6ExtensionStack)
    }

    /// The first bytes of the upper layer: RFC 9293 section 3.1, RFC 768.
    #[inline]
    fn transport(&mut self, protocol: u8, payload: &[u8]) -> Result<(), Malformed> {
        match protocol {
            TCP => {
                let header = payload.first_chunk::<20>().ok_or(Malformed::TcpTruncated)?;
                let header_length = usize::from(header[12] >> 4) * 4;
                if header_length < header.len() || header_length > payload.len() {
                    return Err(Malformed::TcpTruncated);
                }
                self.tcp_psh = header[13] & TCP_FLAG_PSH != 0;
                self.ports = Some(ports([header[0], header[1], header[2], header[3]]));
            }
            UDP => {
                let header = payload.first_chunk::<8>().ok_or(Malformed::UdpTruncated)?;
                self.ports = Some(ports([header[0], header[1], header[2], header[3]]));
            }
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn mx(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let header =
            payload.first_chunk::<{ MX_ENDPOINT_OFFSET + 1 }>().ok_or(Malformed::MxTruncated)?;
        self.mx_mark = header[MX_FLAGS_OFFSET] & MX_FLAG_MARK != 0;
        self.mx_endpoint = Some(header[MX_ENDPOINT_OFFSET]);
        Ok(())
    }
}

#[inline]
const fn ports([a, b, c, d]: [u8; 4]) -> (u16, u16) {
    (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}

#[cfg(test)]
mod tests;
