//! IPv4 in Ethernet frames: addresses of hosts, datagrams of UDP, echoes of ICMP, fragments.
//!
//! Checksums are zero: they are left to NICs, and frames of a model do not change on the way.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use crate::frame::Frame;
use crate::stack::mx::nic_of;

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Bytes of an IPv4 header without options.
const IP: usize = 20;
/// Bytes of an IP packet.
pub(super) const MTU: usize = 1_500;
/// The shortest frame, without FCS.
pub(super) const SHORTEST: usize = 60;
/// Bytes of the headers of UDP and of ICMP echo.
const DATAGRAM: usize = 8;

const ETHER_TYPE: [u8; 2] = [8, 0];
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
/// Another fragment follows.
const MORE_FRAGMENTS: u16 = 0x2000;
/// Fragments begin at multiples of this.
const FRAGMENT_UNIT: usize = 8;

/// The address of a host: 10.9.0.1 is that of host 0.
pub const fn address_of(host: usize) -> Ipv4Addr {
    let [high, low] = (host as u16 + 1).to_be_bytes();
    Ipv4Addr::new(10, 9, high, low)
}

/// A port of a host.
pub(super) type End = (usize, u16);

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// A segment, with its ports.
    Tcp { from: End, to: u16 },
    /// A datagram, with its ports.
    Udp { from: End, to: u16 },
    /// An echo: its identifier and sequence number.
    Echo { from: usize, is_request: bool, identifier: u16, sequence: u16 },
}

/// The Ethernet header from a host to another one.
pub(super) fn ethernet(from: usize, to: usize) -> [u8; ETHERNET] {
    let mut header = [0; ETHERNET];
    header[..6].copy_from_slice(&nic_of(to).0);
    header[6..12].copy_from_slice(&nic_of(from).0);
    header[12..].copy_from_slice(&ETHER_TYPE);
    header
}

/// Whether a frame has an IPv4 packet in it.
pub(super) fn is_ip(frame: &[u8]) -> bool {
    frame.get(12..ETHERNET) == Some(&ETHER_TYPE) && frame.len() >= ETHERNET + IP
}

/// Whether a frame has a segment of TCP in it.
pub(super) fn is_tcp(frame: &[u8]) -> bool {
    is_ip(frame) && frame[ETHERNET + 9] == TCP
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.first_chunk().copied().map(u16::from_be_bytes)
}

/// The host that a packet comes from.
fn sender(packet: &[u8]) -> Option<usize> {
    usize::from(u16_at(packet, 14)?).checked_sub(1)
}

/// What a whole IP packet is, and its payload.
pub(super) fn parse(packet: &[u8]) -> Option<(Protocol, &[u8])> {
    let length = usize::from(u16_at(packet, 2)?);
    let body = packet.get(IP..length)?;
    let host = sender(packet)?;
    let (first, second) = (u16_at(body, 0)?, u16_at(body, 2)?);
    match *packet.get(9)? {
        TCP => Some((Protocol::Tcp { from: (host, first), to: second }, body)),
        UDP => {
            let from = (host, first);
            Some((Protocol::Udp { from, to: second }, body.get(DATAGRAM..)?))
        }
        ICMP => {
            let is_request = match *body.first()? {
                ECHO_REQUEST => true,
                ECHO_REPLY => false,
                _ => return None,
            };
            let (identifier, sequence) = (u16_at(body, 4)?, u16_at(body, 6)?);
            let echo = Protocol::Echo { from: host, is_request, identifier, sequence };
            Some((echo, body.get(DATAGRAM..)?))
        }
        _ => None,
    }
}

/// Fragments of a packet by their place, and whether one is the last.
type Pieces = BTreeMap<usize, (bool, Vec<u8>)>;

/// What makes packets of datagrams, and datagrams of fragments, on one host.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    host: usize,
    identification: u16,
    /// By sender and identification: packets that are not whole yet.
    incomplete: BTreeMap<(usize, u16), Pieces>,
    /// For the bytes of a datagram, and of a frame of it.
    body: Vec<u8>,
    frame: Vec<u8>,
}

/// Packets that wait for a fragment; the oldest are those with the lowest identification.
const INCOMPLETE: usize = 64;

impl Datagrams {
    pub(super) fn new(host: usize) -> Self {
        Self { host, ..Self::default() }
    }

    /// Sends a datagram from a port of this host, in as many frames as it takes.
    pub(super) fn udp(&mut self, from: u16, to: End, payload: &[u8], send: impl FnMut(Frame)) {
        let mut header = [0; DATAGRAM];
        header[..2].copy_from_slice(&from.to_be_bytes());
        header[2..4].copy_from_slice(&to.1.to_be_bytes());
        let length = (DATAGRAM + payload.len()) as u16;
        header[4..6].copy_from_slice(&length.to_be_bytes());
        self.send(UDP, to.0, (header, payload), send);
    }

    /// Sends an echo request, or the reply to one.
    pub(super) fn echo(
        &mut self,
        is_request: bool,
        to: usize,
        (identifier, sequence): (u16, u16),
        payload: &[u8],
        send: impl FnMut(Frame),
    ) {
        let mut header = [0; DATAGRAM];
        header[0] = if is_request { ECHO_REQUEST } else { ECHO_REPLY };
        header[4..6].copy_from_slice(&identifier.to_be_bytes());
        header[6..8].copy_from_slice(&sequence.to_be_bytes());
        self.send(ICMP, to, (header, payload), send);
    }

    fn send(
        &mut self,
        protocol: u8,
        to: usize,
        (header, payload): ([u8; DATAGRAM], &[u8]),
        mut send: impl FnMut(Frame),
    ) {
        const PIECE: usize = (MTU - IP) / FRAGMENT_UNIT * FRAGMENT_UNIT;
        self.identification = self.identification.wrapping_add(1);
        self.body.clear();
        self.body.extend_from_slice(&header);
        self.body.extend_from_slice(payload);
        let pieces = self.body.len().div_ceil(PIECE);
        let frame = &mut self.frame;
        for (number, piece) in self.body.chunks(PIECE).enumerate() {
            frame.clear();
            frame.extend_from_slice(&ethernet(self.host, to));
            let more = if number + 1 < pieces { MORE_FRAGMENTS } else { 0 };
            let offset = (number * PIECE / FRAGMENT_UNIT) as u16 | more;
            frame.extend_from_slice(&[0x45, 0]);
            frame.extend_from_slice(&((IP + piece.len()) as u16).to_be_bytes());
            frame.extend_from_slice(&self.identification.to_be_bytes());
            frame.extend_from_slice(&offset.to_be_bytes());
            frame.extend_from_slice(&[64, protocol, 0, 0]);
            frame.extend_from_slice(&address_of(self.host).octets());
            frame.extend_from_slice(&address_of(to).octets());
            frame.extend_from_slice(piece);
            send(Frame::padded(frame, SHORTEST));
        }
    }

    /// The whole packet, if this one is, or was the last fragment that was missing.
    pub(super) fn whole<'a>(&mut self, packet: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let fragment = u16_at(packet, 6)?;
        let offset = usize::from(fragment & !(MORE_FRAGMENTS | 0xc000)) * FRAGMENT_UNIT;
        let is_last = fragment & MORE_FRAGMENTS == 0;
        if offset == 0 && is_last {
            return Some(packet.into());
        }
        let length = usize::from(u16_at(packet, 2)?);
        let body = packet.get(IP..length)?;
        let key = (sender(packet)?, u16_at(packet, 4)?);
        if self.incomplete.len() >= INCOMPLETE && !self.incomplete.contains_key(&key) {
            self.incomplete.pop_first();
        }
        let pieces = self.incomplete.entry(key).or_default();
        pieces.insert(offset, (is_last, body.into()));
        let (end, (is_last, last)) = pieces.last_key_value()?;
        let bytes: usize = pieces.values().map(|(_, piece)| piece.len()).sum();
        if !*is_last || bytes != end + last.len() {
            return None;
        }
        let mut whole = packet[..IP].to_vec();
        whole[2..4].copy_from_slice(&((IP + bytes) as u16).to_be_bytes());
        self.incomplete.remove(&key)?.values().for_each(|(_, piece)| whole.extend(piece));
        Some(whole.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packets in the frames that `sends` sends.
    fn packets(sends: impl FnOnce(&mut dyn FnMut(Frame))) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        sends(&mut |frame| packets.push(frame.whole(&mut Vec::new())[ETHERNET..].to_vec()));
        packets
    }

    #[test]
    fn what_is_sent_can_be_parsed() {
        let mut from = Datagrams::new(300);
        let packet = packets(|send| from.udp(7, (1, 9), b"xyz", send)).remove(0);
        assert_eq!(packet.len(), SHORTEST - ETHERNET);
        let udp = Protocol::Udp { from: (300, 7), to: 9 };
        assert_eq!(parse(&packet), Some((udp, &b"xyz"[..])));
        let echo = Protocol::Echo { from: 300, is_request: true, identifier: 1, sequence: 2 };
        let packet = packets(|send| from.echo(true, 0, (1, 2), &[7; 56], send)).remove(0);
        assert_eq!(parse(&packet), Some((echo, &[7; 56][..])));
    }

    #[test]
    fn fragments_become_whole_in_any_order() {
        let payload: Vec<u8> = (0..4_000).map(|byte| byte as u8).collect();
        let (mut from, mut to) = (Datagrams::new(0), Datagrams::new(1));
        let mut fragments = packets(|send| from.udp(7, (1, 9), &payload, send));
        assert_eq!(fragments.len(), 3);
        for _ in 0..3 {
            fragments.rotate_left(1);
            let wholes: Vec<_> =
                fragments.iter().filter_map(|fragment| to.whole(fragment)).collect();
            assert_eq!(wholes.len(), 1);
            assert_eq!(parse(&wholes[0]).map(|(_, body)| body), Some(&payload[..]));
        }
        assert!(to.incomplete.is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_dropped() {
        let mut to = Datagrams::new(1);
        assert_eq!(to.whole(&[0; 5]), None);
        assert_eq!(parse(&[0; 20]), None);
        assert_eq!(parse(&[0x45; 24]), None);
        let mut from = Datagrams::new(0);
        for _ in 0..2 * INCOMPLETE {
            let fragments = packets(|send| from.udp(7, (1, 9), &[0; 3_000], send));
            assert_eq!(to.whole(&fragments[0]), None);
            assert_eq!(to.whole(&fragments[0]), None);
        }
        assert!(to.incomplete.len() <= INCOMPLETE);
    }
}
