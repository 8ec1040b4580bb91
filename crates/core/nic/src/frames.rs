//! Frames for tests: the smallest builder that makes every header this crate reads.

use alloc::vec::Vec;

/// An Ethernet frame without FCS: two addresses, the EtherType, the payload.
pub(crate) fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::from([0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1]);
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The same frame with one more VLAN tag outside.
pub(crate) fn tagged(tpid: u16, priority: u8, frame: &[u8]) -> Vec<u8> {
    let mut tagged = frame[..12].to_vec();
    tagged.extend(tpid.to_be_bytes());
    tagged.extend((u16::from(priority) << 13 | 100).to_be_bytes());
    tagged.extend(&frame[12..]);
    tagged
}

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2, DSCP 46, with `options` (whole words) after the fixed
/// header.
pub(crate) fn ipv4(protocol: u8, fragment: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let mut packet = Vec::from([0x40 | (header / 4) as u8, 46 << 2]);
    packet.extend(((header + payload.len()) as u16).to_be_bytes());
    packet.extend([0, 1]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(options);
    packet.extend(payload);
    packet
}

/// An IPv6 packet from ..01 to ..02, DSCP 46; `payload` begins with the header that `next` names.
pub(crate) fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::from([0x60 | 46 >> 2, (46 & 3) << 6, 0, 0]);
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    for host in [1, 2] {
        packet.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    packet.extend(payload);
    packet
}

/// A TCP segment without options; `flags` is the byte that holds PSH (0x08).
pub(crate) fn tcp(source: u16, destination: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut segment = source.to_be_bytes().to_vec();
    segment.extend(destination.to_be_bytes());
    segment.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(payload);
    segment
}

/// A UDP datagram.
pub(crate) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = source.to_be_bytes().to_vec();
    datagram.extend(destination.to_be_bytes());
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

/// A whole IPv4/TCP frame.
pub(crate) fn tcp4(source: u16, destination: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ipv4(6, 0, &[], &tcp(source, destination, flags, payload)))
}

/// A whole IPv4/UDP frame.
pub(crate) fn udp4(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ipv4(17, 0, &[], &udp(source, destination, payload)))
}

/// An MX frame for `endpoint`.
pub(crate) fn mx(flags: u8, endpoint: u8) -> Vec<u8> {
    ethernet(0x86df, &[0, flags, endpoint, 0, 0, 0, 0, 0])
}
