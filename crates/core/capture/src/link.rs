//! Link types: whatever a capture has of a packet, as Ethernet would have carried it.
//!
//! Headers are read by [`nic::headers`], which holds lengths against the whole frame. A capture may
//! have only the beginning of it, so the beginning is laid over zeros of the frame's length; what
//! was not captured is payload to all rules.

use alloc::vec::Vec;

use nic::headers::{self, Headers, Malformed};

use crate::recorded::Recorded;

/// LINKTYPE_ numbers (<https://www.tcpdump.org/linktypes.html>).
const NULL: i32 = 0;
const ETHERNET: i32 = 1;
const RAW_OLD: [i32; 2] = [12, 14];
const RAW: i32 = 101;
const LOOP: i32 = 108;
const SLL: i32 = 113;
const IPV4: i32 = 228;
const IPV6: i32 = 229;
const SLL2: i32 = 276;

const ETHERNET_HEADER: usize = 14;
/// Bytes of a header that rules may look at: Ethernet, 8 tags, IPv6 with extensions, TCP.
const HEADERS: usize = 256;
/// Bytes up to the ports of UDP behind IPv4: zeros must not be taken for them. A TCP header that is
/// zeros contradicts itself.
const PORTS: usize = 14 + 20 + 8;
/// The longest frame that is looked at; what offloads merge is not longer.
const LONGEST: usize = 1 << 17;

/// `sll_pkttype` of a packet that the host sends (`include/uapi/linux/if_packet.h`).
const OUTGOING: u16 = 4;

/// Which way a packet went, as far as the capture says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketDirection {
    /// The capture does not say it.
    #[default]
    Unknown,
    /// The host received it.
    In,
    /// The host sent it.
    Out,
}

/// One packet of a capture.
#[derive(Clone, Debug)]
pub struct CapturedPacket {
    /// Nanoseconds since 1970, no less than those of the packet before.
    pub at_ns: u64,
    /// The interface, by its place in the capture.
    pub interface: usize,
    /// Bytes of the frame, Ethernet header included and FCS not, or what they would be on Ethernet.
    pub length: u32,
    /// The headers that rules look at.
    pub headers: Result<Headers, Malformed>,
    /// Source and destination station, where the link has both.
    pub stations: Option<[[u8; 6]; 2]>,
    /// Which way it went.
    pub direction: PacketDirection,
    /// What Earmark's own NIC has recorded.
    pub recorded: Option<Recorded>,
}

/// What a link header says.
struct Linked<'a> {
    /// What follows the link header, beginning with an Ethernet header if `has_header`.
    rest: &'a [u8],
    has_header: bool,
    ether_type: u16,
    direction: PacketDirection,
    /// Bytes of the link header.
    skipped: usize,
}

/// The place where headers are laid over zeros.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    bytes: Vec<u8>,
    dirty: usize,
}

/// What a link gives: length, headers, stations, direction.
pub(crate) type Framed = (u32, Result<Headers, Malformed>, Option<[[u8; 6]; 2]>, PacketDirection);

impl Bench {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), dirty: 0 }
    }

    /// Reads a packet of a link type; `None` if that is not known. `original` is how long it was.
    #[inline]
    pub(crate) fn frame(&mut self, link: i32, captured: &[u8], original: u32) -> Option<Framed> {
        let linked = linked(link, captured)?;
        let original = (original as usize).max(captured.len()).min(LONGEST);
        let header = if linked.has_header { 0 } else { ETHERNET_HEADER };
        let length = header + original.saturating_sub(linked.skipped);
        let whole = linked.has_header && captured.len() >= original;
        let stations = linked.has_header.then(|| stations(linked.rest)).flatten();
        let has_ports = header + linked.rest.len() >= PORTS || captured.len() >= original;
        let headers = if whole {
            headers::parse(linked.rest)
        } else if !has_ports {
            Err(Malformed::EthernetTruncated)
        } else {
            headers::parse(self.lay(&linked, header, length))
        };
        Some((length as u32, headers, stations, linked.direction))
    }

    /// Lays what was captured over zeros.
    fn lay(&mut self, linked: &Linked<'_>, header: usize, length: usize) -> &[u8] {
        if self.bytes.len() < length {
            self.bytes.resize(length, 0);
        }
        let count = linked.rest.len().min(HEADERS).min(length - header);
        let end = header + count;
        if self.dirty > end {
            self.bytes[end..self.dirty].fill(0);
        }
        self.dirty = end;
        if header > 0 {
            self.bytes[..12].fill(0);
            self.bytes[12..14].copy_from_slice(&linked.ether_type.to_be_bytes());
        }
        self.bytes[header..end].copy_from_slice(&linked.rest[..count]);
        &self.bytes[..length]
    }
}

/// Source and destination of an Ethernet frame.
fn stations(frame: &[u8]) -> Option<[[u8; 6]; 2]> {
    let [destination, source] = frame.first_chunk::<12>()?.as_chunks::<6>().0 else { return None };
    Some([*source, *destination])
}

fn linked(link: i32, captured: &[u8]) -> Option<Linked<'_>> {
    let unknown = PacketDirection::Unknown;
    let without = |skipped: usize, ether_type, direction| {
        let rest = captured.get(skipped..).unwrap_or_default();
        Linked { rest, has_header: false, ether_type, direction, skipped }
    };
    let word =
        |at: usize| captured.get(at..at + 2).map_or(0, |it| u16::from_be_bytes([it[0], it[1]]));
    let direction =
        |kind| if kind == OUTGOING { PacketDirection::Out } else { PacketDirection::In };
    Some(match link {
        ETHERNET => Linked {
            rest: captured,
            has_header: true,
            ether_type: 0,
            direction: unknown,
            skipped: 0,
        },
        SLL => without(16, word(14), direction(word(0))),
        SLL2 => without(20, word(0), direction(word(10) >> 8)),
        RAW | IPV4 | IPV6 => without(0, ip_type(captured), unknown),
        NULL | LOOP => without(4, ip_type(captured.get(4..).unwrap_or_default()), unknown),
        _ if RAW_OLD.contains(&link) => without(0, ip_type(captured), unknown),
        _ => return None,
    })
}

/// The EtherType of an IP packet, by its version.
fn ip_type(packet: &[u8]) -> u16 {
    match packet.first().map(|first| first >> 4) {
        Some(4) => 0x0800,
        Some(6) => 0x86dd,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// An IPv4/UDP packet of `length` bytes to port 9.
    fn packet(length: u16) -> Vec<u8> {
        let mut bytes = vec![0; usize::from(length)];
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes[9] = 17;
        bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        bytes[20..24].copy_from_slice(&[0x30, 0x39, 0, 9]);
        bytes
    }

    fn ethernet(length: u16) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        bytes.extend(packet(length));
        bytes
    }

    #[test]
    fn every_link_type_gives_what_ethernet_would() {
        let whole = Bench::new().frame(ETHERNET, &ethernet(100), 114).unwrap();
        let sll = [&[0, 4, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0][..], &packet(100)].concat();
        let sll2 = [&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6][..], &[0; 8], &packet(100)].concat();
        let null = [&[2, 0, 0, 0][..], &packet(100)].concat();
        let mut bench = Bench::new();
        for (link, bytes, direction) in [
            (SLL, sll, PacketDirection::Out),
            (SLL2, sll2, PacketDirection::In),
            (RAW, packet(100), PacketDirection::Unknown),
            (IPV4, packet(100), PacketDirection::Unknown),
            (12, packet(100), PacketDirection::Unknown),
            (NULL, null, PacketDirection::Unknown),
        ] {
            let (length, headers, stations, way) =
                bench.frame(link, &bytes, bytes.len() as u32).unwrap();
            assert_eq!((length, way, stations), (114, direction, None), "{link}");
            assert_eq!(headers, whole.1, "{link}");
        }
        assert_eq!(whole.1.unwrap().ports(), Some((12_345, 9)));
        assert_eq!(whole.2, Some([[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]]));
        assert!(bench.frame(105, &packet(100), 100).is_none(), "IEEE 802.11");
    }

    #[test]
    fn cut_packets_keep_their_length_and_their_headers() {
        let mut bench = Bench::new();
        // What was there before must not show through.
        assert!(bench.frame(ETHERNET, &[0xff; 1_500], 1_501).is_some());
        let (length, headers, ..) = bench.frame(ETHERNET, &ethernet(1_500)[..60], 1_514).unwrap();
        assert_eq!((length, headers.unwrap().ports()), (1_514, Some((12_345, 9))));
        for cut in 0..42 {
            let (length, _, stations, _) =
                bench.frame(ETHERNET, &ethernet(1_500)[..cut], 1_514).unwrap();
            assert_eq!((length, stations.is_some()), (1_514, cut >= 12));
        }
        assert!(bench.frame(SLL, &[], 0).is_some() && bench.frame(RAW, &[], u32::MAX).is_some());
    }
}
