//! `recvmsg` with what comes beside the data.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::replies;

/// When a packet passed, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The kernel's, since 1970.
    pub software: Option<u64>,
    /// The NIC's, on a clock of its own.
    pub hardware: Option<u64>,
}

/// Where a packet of a packet socket came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAddress {
    /// EtherType of the packet.
    pub protocol: u16,
    /// The interface, by its index.
    pub interface: u32,
    /// The kind of the interface (`ARPHRD_`).
    pub hardware: u16,
    /// Which way it went (`PACKET_HOST`, `PACKET_OUTGOING`, ...).
    pub kind: u8,
    /// The sender's address, and how many bytes of it count.
    pub address: ([u8; 8], u8),
}

/// What a message brought.
pub(super) struct StampedMessage {
    pub(super) length: usize,
    pub(super) from: Option<SocketAddr>,
    /// The address that it was sent to, if the socket reports it.
    pub(super) to: Option<IpAddr>,
    pub(super) stamps: Stamps,
    pub(super) link: Option<LinkAddress>,
    /// Which datagram a transmit stamp is of.
    pub(super) number: Option<u32>,
}

/// Room for what comes beside the data, aligned as its headers are.
#[repr(C, align(8))]
struct Beside([u8; 512]);

pub(super) fn receive(
    socket: &OwnedFd,
    buffer: &mut [u8],
    flags: i32,
) -> io::Result<StampedMessage> {
    let mut beside = Beside([0; 512]);
    // SAFETY: all zeroes is a valid socket address of no family.
    let mut from: libc::sockaddr_storage = unsafe { zeroed() };
    // SAFETY: all zeroes is a valid message without anything in it.
    let mut header: libc::msghdr = unsafe { zeroed() };
    let mut data = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    header.msg_name = (&raw mut from).cast();
    header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    header.msg_iov = &raw mut data;
    header.msg_iovlen = 1;
    header.msg_control = beside.0.as_mut_ptr().cast();
    header.msg_controllen = beside.0.len() as _;
    // SAFETY: every pointer in the header is to memory of the given length that outlives the call.
    // JUSTIFICATION: rustix does not parse these control messages.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    let used = (header.msg_controllen as usize).min(beside.0.len());
    let mut message = StampedMessage {
        length,
        from: address(&from),
        to: None,
        stamps: Stamps::default(),
        link: link_address(&from),
        number: None,
    };
    parse(&beside.0[..used], &mut message);
    Ok(message)
}

/// Walks the control messages: each is a header of length, level and type, its data, and padding to
/// eight bytes.
fn parse(mut bytes: &[u8], message: &mut StampedMessage) {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    while bytes.len() >= HEADER {
        let word = |at: usize| {
            i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let mut length = [0; size_of::<usize>()];
        length.copy_from_slice(&bytes[..size_of::<usize>()]);
        let length = usize::from_ne_bytes(length);
        if length < HEADER || length > bytes.len() {
            return;
        }
        let (level, kind) = (word(HEADER - 8), word(HEADER - 4));
        let data = &bytes[HEADER..length];
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => message.stamps = stamps(data),
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                message.number = number(data);
            }
            _ => message.to = replies::address(level, kind, data).or(message.to),
        }
        bytes = bytes.get(length.next_multiple_of(8)..).unwrap_or_default();
    }
}

/// `struct scm_timestamping`: software, nothing, hardware; zero is none.
fn stamps(data: &[u8]) -> Stamps {
    let word = |at: usize| -> Option<u64> {
        let bytes = data.get(at * 8..at * 8 + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let nanos = |at: usize| {
        let nanos = word(at)?.checked_mul(1_000_000_000)?.checked_add(word(at + 1)?)?;
        (nanos > 0).then_some(nanos)
    };
    Stamps { software: nanos(0), hardware: nanos(4) }
}

/// `struct sock_extended_err`: the fifth byte is its origin, and the last word of it the number.
fn number(data: &[u8]) -> Option<u32> {
    let number = data.get(12..16)?.try_into().ok()?;
    (*data.get(4)? == libc::SO_EE_ORIGIN_TIMESTAMPING).then(|| u32::from_ne_bytes(number))
}

fn link_address(storage: &libc::sockaddr_storage) -> Option<LinkAddress> {
    if i32::from(storage.ss_family) != libc::AF_PACKET {
        return None;
    }
    // SAFETY: the family says that it is a link-layer address, and the storage is larger.
    let link = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_ll>() };
    Some(LinkAddress {
        protocol: u16::from_be(link.sll_protocol),
        interface: link.sll_ifindex.cast_unsigned(),
        hardware: link.sll_hatype,
        kind: link.sll_pkttype,
        address: (link.sll_addr, link.sll_halen),
    })
}

fn address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is an IPv4 address, and the storage is larger.
            let ipv4 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
            let address = Ipv4Addr::from_bits(u32::from_be(ipv4.sin_addr.s_addr));
            Some(SocketAddr::from((address, u16::from_be(ipv4.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is an IPv6 address, and the storage is larger.
            let ipv6 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
            let address = Ipv6Addr::from(ipv6.sin6_addr.s6_addr);
            let port = u16::from_be(ipv6.sin6_port);
            Some(SocketAddrV6::new(address, port, 0, ipv6.sin6_scope_id).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> (Stamps, Option<u32>) {
        let mut message = StampedMessage {
            length: 0,
            from: None,
            to: None,
            stamps: Stamps::default(),
            link: None,
            number: None,
        };
        parse(bytes, &mut message);
        (message.stamps, message.number)
    }

    #[test]
    fn cut_off_control_messages_say_nothing() {
        assert_eq!(parsed(&[]), (Stamps::default(), None));
        assert_eq!(parsed(&[0xff; 40]), (Stamps::default(), None));
        let mut short = [0; 24];
        short[0] = 24;
        short[8..12].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
        short[12..16].copy_from_slice(&libc::SCM_TIMESTAMPING.to_ne_bytes());
        assert_eq!(parsed(&short), (Stamps::default(), None));
    }

    #[test]
    fn software_and_hardware_stamps_are_distinguished() {
        let mut data = [0; 48];
        data[0] = 2;
        data[8] = 7;
        assert_eq!(stamps(&data), Stamps { software: Some(2_000_000_007), hardware: None });
        data[40] = 5;
        assert_eq!(stamps(&data).hardware, Some(5));
    }
}
