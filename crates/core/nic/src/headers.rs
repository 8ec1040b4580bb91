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
//! length frames, ESP) is fine and opaque. A fragment after the first has no ports: payload
//! stands in their place.
//!
//! Checksums are not looked at, and neither are jumbograms (RFC 2675): an IPv6 payload length of 0
//! means none.

mod layers;
#[cfg(test)]
mod tests;

use core::fmt;

pub use layers::parse;

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
const VLAN_C: u16 = 0x8100; // 802.1Q
const VLAN_S: u16 = 0x88a8; // 802.1ad
const VLAN_OLD: u16 = 0x9100; // outer tags before 802.1ad
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
///
/// Values are kept in one array and what is known about them in one byte, so that a rule can pick
/// a field by its index and check everything it needs to exist at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    values: [u16; Value::COUNT],
    facts: Facts,
    protocol: u8,
    mx_endpoint: u8,
    addresses: Addresses,
}

/// The fields that rules compare with numbers, by their place among the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Length,
    EtherType,
    VlanPriority,
    Dscp,
    SourcePort,
    DestinationPort,
}

impl Value {
    const COUNT: usize = Self::DestinationPort as usize + 1;
}

/// A set of yes-or-no facts about a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts(u8);

impl Facts {
    pub(crate) const NONE: Self = Self(0);
    /// The sender of this MX frame marked it.
    pub(crate) const MX_MARK: Self = Self(0x01);
    /// There is an IP header, so a code point and a protocol.
    pub(crate) const IP: Self = Self(0x02);
    /// There is a VLAN tag, so a priority.
    pub(crate) const VLAN: Self = Self(0x04);
    /// A TCP segment with PSH: the bit that it is in the TCP header, too.
    pub(crate) const TCP_PSH: Self = Self(TCP_FLAG_PSH);
    /// There are ports, and they are those of TCP.
    pub(crate) const TCP_PORTS: Self = Self(0x10);
    /// There are ports, and they are those of UDP.
    pub(crate) const UDP_PORTS: Self = Self(0x20);
    /// A fragment of an IP packet.
    pub(crate) const FRAGMENT: Self = Self(0x40);
    /// There is an MX header, so an endpoint.
    pub(crate) const MX: Self = Self(0x80);

    /// Both sets together.
    #[inline]
    #[must_use]
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set, if `condition` holds.
    #[inline]
    #[must_use]
    const fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::NONE }
    }

    /// Whether all of `other` is true as well.
    #[inline]
    #[must_use]
    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
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

impl Headers {
    /// Bytes of the frame: Ethernet header and padding included, FCS excluded. 65535 stands for
    /// anything longer, too (segmentation offload makes frames of a few bytes more).
    #[inline]
    #[must_use]
    pub const fn length(&self) -> u16 {
        self.value(Value::Length)
    }

    /// EtherType behind any VLAN tags; below 0x600 it is an IEEE 802.3 length.
    #[inline]
    #[must_use]
    pub const fn ether_type(&self) -> u16 {
        self.value(Value::EtherType)
    }

    /// Priority of the outermost VLAN tag (IEEE 802.1Q PCP), 0 to 7.
    #[inline]
    #[must_use]
    pub fn vlan_priority(&self) -> Option<u8> {
        self.has(Facts::VLAN).then_some(self.value(Value::VlanPriority) as u8)
    }

    /// Differentiated services code point of an IP packet (RFC 2474), 0 to 63.
    #[inline]
    #[must_use]
    pub fn dscp(&self) -> Option<u8> {
        self.has(Facts::IP).then_some(self.value(Value::Dscp) as u8)
    }

    /// Protocol of an IP packet (IANA number), behind any IPv6 extension headers that could be
    /// read.
    #[inline]
    #[must_use]
    pub fn protocol(&self) -> Option<u8> {
        self.has(Facts::IP).then_some(self.protocol)
    }

    /// Addresses of an IP packet.
    #[inline]
    #[must_use]
    pub const fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Source and destination port of a TCP or UDP packet, unless it is a fragment after the
    /// first.
    #[inline]
    #[must_use]
    pub fn ports(&self) -> Option<(u16, u16)> {
        (self.has(Facts::TCP_PORTS) || self.has(Facts::UDP_PORTS))
            .then_some((self.value(Value::SourcePort), self.value(Value::DestinationPort)))
    }

    /// The PSH flag of a TCP segment (RFC 9293 section 3.1).
    #[inline]
    #[must_use]
    pub const fn tcp_psh(&self) -> bool {
        self.has(Facts::TCP_PSH)
    }

    /// The IP packet is a fragment, the first one included.
    #[inline]
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.has(Facts::FRAGMENT)
    }

    /// The sender of this MX frame marked it.
    #[inline]
    #[must_use]
    pub const fn mx_mark(&self) -> bool {
        self.has(Facts::MX_MARK)
    }

    /// Destination endpoint of an MX frame.
    #[inline]
    #[must_use]
    pub fn mx_endpoint(&self) -> Option<u8> {
        self.has(Facts::MX).then_some(self.mx_endpoint)
    }

    /// Whether all these facts hold.
    #[inline]
    pub(crate) const fn has(&self, facts: Facts) -> bool {
        self.facts.contains(facts)
    }

    /// A value as it is; 0 when the frame lacks the field.
    #[inline]
    pub(crate) const fn value(&self, value: Value) -> u16 {
        self.values[value as usize]
    }
}
