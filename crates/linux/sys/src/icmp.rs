//! ICMP echo over IPv4 (RFC 792): the far kernel is the server.
//!
//! A ping socket (`SOCK_DGRAM`) needs no privilege where `net.ipv4.ping_group_range` allows it, and
//! gets only its own answers. A raw one gets every ICMP packet of the host, each with its IP
//! header, and may send what is not answered: a reply without a request, which the far kernel
//! drops.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use base::prng::Prng;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};

const HEADER_BYTES: usize = 8;
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// A ping socket, then a raw one; or the other way round.
pub const PING_FIRST: [SocketType; 2] = [SocketType::DGRAM, SocketType::RAW];
/// A raw one, then a ping socket.
pub const RAW_FIRST: [SocketType; 2] = [SocketType::RAW, SocketType::DGRAM];

/// Opens a socket towards `address` that does not block, of the first kind that may be had; and
/// whether it is a raw one.
///
/// # Errors
/// If neither kind may be had, saying who may, or there is no way to `address`.
pub fn open(address: SocketAddr, kinds: [SocketType; 2]) -> io::Result<(OwnedFd, bool)> {
    if !address.is_ipv4() {
        let why = format!("icmp runs over IPv4 only, and {} is not", address.ip());
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = |kind| socket_with(AddressFamily::INET, kind, flags, Some(ipproto::ICMP));
    let mut kind = kinds[0];
    let socket = match socket(kind) {
        Err(Errno::PERM | Errno::ACCESS) => {
            kind = kinds[1];
            socket(kind)
        }
        first => first,
    };
    let socket = match socket {
        Err(Errno::PERM | Errno::ACCESS) => return Err(forbidden()),
        socket => socket?,
    };
    connect(&socket, &address)?;
    Ok((socket, kind == SocketType::RAW))
}

fn forbidden() -> io::Error {
    let why = "neither a ping socket nor a raw one may be opened; root may, and so may the groups \
               of `sysctl net.ipv4.ping_group_range`";
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// What tells answers on a raw socket from those to others, of this process, too: each call has
/// another. Mixed, so that processes with neighbouring numbers do not share identifiers.
pub fn identifier() -> u16 {
    static SOCKETS: AtomicU32 = AtomicU32::new(0);
    let socket = u64::from(SOCKETS.fetch_add(1, Ordering::Relaxed));
    Prng::new(u64::from(std::process::id()) | socket << 32).next_u64() as u16
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
pub fn encode(packet: &mut Vec<u8>, identifier: u16, sequence: u16, payload: &[u8]) {
    encode_as(ECHO_REQUEST, packet, [identifier, sequence], payload);
}

/// Writes a reply without a request into `packet`: it goes as far as the far kernel, and no
/// further.
pub fn encode_unasked(packet: &mut Vec<u8>, identifier: u16, payload: &[u8]) {
    encode_as(ECHO_REPLY, packet, [identifier, 0], payload);
}

fn encode_as(kind: u8, packet: &mut Vec<u8>, words: [u16; 2], payload: &[u8]) {
    packet.clear();
    packet.extend_from_slice(&[kind, 0, 0, 0]);
    words.iter().for_each(|word| packet.extend_from_slice(&word.to_be_bytes()));
    packet.extend_from_slice(payload);
    let checksum = checksum(packet);
    packet[2..4].copy_from_slice(&checksum.to_be_bytes());
}

/// Where the payload of an echo reply starts; `None` if the packet is something else or for someone
/// else. On a raw socket `identifier` says whose it must be, and an IP header comes first.
pub fn payload_start(packet: &[u8], raw_identifier: Option<u16>) -> Option<usize> {
    let header = match raw_identifier {
        Some(_) => usize::from(*packet.first()? & 0x0f) * 4,
        None => 0,
    };
    let icmp = packet.get(header..header + HEADER_BYTES)?;
    let is_ours = raw_identifier.is_none_or(|ours| icmp[4..6] == ours.to_be_bytes());
    (icmp[0] == ECHO_REPLY && is_ours).then_some(header + HEADER_BYTES)
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
    fn replies_are_distinguished_from_the_rest() {
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
