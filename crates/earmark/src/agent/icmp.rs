//! ICMP echo over IPv4: the peer's kernel is the server.
//!
//! A ping socket (`SOCK_DGRAM`) is tried first, because it needs no privilege where
//! `net.ipv4.ping_group_range` allows it and gets only its own answers; then a raw one, which gets
//! every ICMP packet of the host, each with its IP header. The workload sees payloads only.

use super::poller::Poller;
use super::port::{Arrival, Port, Ready, explain};
use super::udp::wait_writable;
use crate::workload::Connection;
use nic::prng::Prng;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, ipproto, recv, send,
    socket_with,
};
use std::io;
use std::net::{IpAddr, SocketAddr};

const HEADER_BYTES: usize = 8;
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// See the module.
pub(super) struct Icmp {
    address: IpAddr,
    sockets: Vec<OwnedFd>,
    raw: bool,
    /// Identifies the first connection; the others follow. A ping socket has one of its own
    /// instead.
    identifier: u16,
    sequence: u16,
    packet: Vec<u8>,
}

impl Icmp {
    /// Opens `connections` sockets towards one host.
    pub(super) fn connect(
        poller: &Poller,
        address: SocketAddr,
        connections: usize,
    ) -> Result<Self, String> {
        if !address.is_ipv4() {
            return Err(format!("icmp runs over IPv4 only, and {} is not", address.ip()));
        }
        let open = |kind: SocketType| -> io::Result<Vec<OwnedFd>> {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = |token| {
                let fd = socket_with(AddressFamily::INET, kind, flags, Some(ipproto::ICMP))?;
                connect(&fd, &address)?;
                poller.add(&fd, token)?;
                Ok(fd)
            };
            (0..connections as u64).map(socket).collect()
        };
        let (sockets, raw) = match open(SocketType::DGRAM) {
            Ok(sockets) => (sockets, false),
            Err(_) => match open(SocketType::RAW) {
                Ok(sockets) => (sockets, true),
                Err(error) => return Err(explain("ICMP socket to", address.ip(), &error)),
            },
        };
        // Mixed, so that agents with neighbouring process numbers do not share identifiers.
        let identifier = Prng::new(u64::from(std::process::id())).next_u64() as u16;
        let packet = Vec::with_capacity(65_536);
        Ok(Self { address: address.ip(), sockets, raw, identifier, sequence: 0, packet })
    }
}

/// The ones' complement sum of RFC 1071 over 16-bit words.
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| {
        u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or_default()]))
    };
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Writes an echo request into `packet`.
fn encode(packet: &mut Vec<u8>, identifier: u16, sequence: u16, payload: &[u8]) {
    packet.clear();
    packet.extend_from_slice(&[ECHO_REQUEST, 0, 0, 0]);
    packet.extend_from_slice(&identifier.to_be_bytes());
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(payload);
    let checksum = checksum(packet);
    packet[2..4].copy_from_slice(&checksum.to_be_bytes());
}

/// Where the payload of an echo reply starts; `None` if the packet is something else or for someone
/// else. On a raw socket `identifier` says whose it must be, and an IP header comes first.
fn payload_start(packet: &[u8], raw_identifier: Option<u16>) -> Option<usize> {
    let header = match raw_identifier {
        Some(_) => usize::from(*packet.first()? & 0x0f) * 4,
        None => 0,
    };
    let icmp = packet.get(header..header + HEADER_BYTES)?;
    let is_ours = raw_identifier.is_none_or(|ours| icmp[4..6] == ours.to_be_bytes());
    (icmp[0] == ECHO_REPLY && is_ours).then_some(header + HEADER_BYTES)
}

impl Port for Icmp {
    fn address(&self) -> String {
        self.address.to_string()
    }

    fn send(&mut self, _: &Poller, connection: Connection, bytes: &[u8]) -> io::Result<usize> {
        let identifier = self.identifier.wrapping_add(connection as u16);
        encode(&mut self.packet, identifier, self.sequence, bytes);
        self.sequence = self.sequence.wrapping_add(1);
        loop {
            match send(&self.sockets[connection], &self.packet, SendFlags::empty()) {
                Ok(_) => return Ok(0),
                Err(Errno::AGAIN) => wait_writable(&self.sockets[connection])?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn receive(&mut self, _: &Poller, ready: Ready, buffer: &mut [u8]) -> io::Result<Arrival> {
        let connection = ready.token as Connection;
        let identifier = self.identifier.wrapping_add(connection as u16);
        let length = match recv(&self.sockets[connection], &mut *buffer, RecvFlags::empty()) {
            Ok((length, _)) => length,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Arrival::Nothing),
            Err(error) => return Err(error.into()),
        };
        let Some(start) = payload_start(&buffer[..length], self.raw.then_some(identifier)) else {
            return Ok(Arrival::Nothing);
        };
        buffer.copy_within(start..length, 0);
        Ok(Arrival::Bytes(connection, length - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_echo_request() {
        let mut packet = Vec::new();
        encode(&mut packet, 0x1234, 1, b"abc");
        // 0800 + 1234 + 0001 + 6162 + 6300 = de97, complement 2168.
        assert_eq!(packet, [8, 0, 0x21, 0x68, 0x12, 0x34, 0, 1, b'a', b'b', b'c']);
        assert_eq!(checksum(&packet), 0, "a packet with its checksum sums to nothing");
    }

    #[test]
    fn replies_are_told_from_the_rest() {
        let mut reply = Vec::new();
        encode(&mut reply, 7, 1, b"x");
        assert_eq!(payload_start(&reply, None), None, "our own request, seen on loopback");
        reply[0] = ECHO_REPLY;
        assert_eq!(payload_start(&reply, None), Some(8));
        let raw = [&[0x45; 20], reply.as_slice()].concat();
        assert_eq!(payload_start(&raw, Some(7)), Some(28));
        assert_eq!(payload_start(&raw, Some(8)), None, "another process's");
        assert_eq!(payload_start(&raw[..27], Some(7)), None, "cut short");
    }
}
