//! Answers that leave from the address that was asked.
//!
//! A socket that is bound to all addresses of its host would answer from the one that the route to
//! the client prefers. A client that has asked another one, and is connected to it, does not take
//! such an answer. `IP_PKTINFO` (`ip(7)`) and `IPV6_PKTINFO` (RFC 3542, section 6) say which
//! address a datagram was sent to, and from which one another is to leave.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::addr::{SocketAddrArg, SocketAddrOpaque};
use rustix::net::{AddressFamily, sockopt};

use crate::option;

/// Bytes of the header of a control message.
const HEADER: usize = size_of::<libc::cmsghdr>();
/// Bytes of a control message with `struct in6_pktinfo` and its padding; `in_pktinfo` is shorter.
const CONTROL_LENGTH: usize = (HEADER + 20).next_multiple_of(8);

/// From now on each datagram that comes says which address it was sent to.
pub fn report_addresses(socket: impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd();
    match sockopt::socket_domain(socket)? {
        AddressFamily::INET => option::set_int(socket, libc::SOL_IP, libc::IP_PKTINFO, 1),
        _ => option::set_int(socket, libc::SOL_IPV6, libc::IPV6_RECVPKTINFO, 1),
    }
}

/// The address in a control message of this level and kind, if there is one from which an answer
/// can leave.
pub(crate) fn address(level: i32, kind: i32, data: &[u8]) -> Option<IpAddr> {
    let address: IpAddr = match (level, kind) {
        // `struct in_pktinfo`: an interface, the address for answers, and that of the header.
        (libc::SOL_IP, libc::IP_PKTINFO) => {
            Ipv4Addr::from(<[u8; 4]>::try_from(data.get(4..8)?).ok()?).into()
        }
        // `struct in6_pktinfo`: the address of the header, and an interface.
        (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
            Ipv6Addr::from(<[u8; 16]>::try_from(data.get(..16)?).ok()?).to_canonical()
        }
        _ => return None,
    };
    (!address.is_multicast() && !address.is_unspecified()).then_some(address)
}

/// Sends a datagram that leaves from this address, or from the usual one where there is none or it
/// cannot leave from there.
pub fn send(
    socket: impl AsFd,
    bytes: &[u8],
    to: SocketAddr,
    from: Option<IpAddr>,
) -> io::Result<()> {
    let mut room = Room([0; CONTROL_LENGTH]);
    let length = from.map_or(0, |from| write(from, &mut room.0));
    match send_with(&socket, bytes, to, &mut room.0[..length]) {
        // It may be that of a broadcast, or no longer one of this host.
        Err(_) if length > 0 => send_with(&socket, bytes, to, &mut []),
        result => result,
    }
}

/// Room for a control message, aligned as its header is.
#[repr(C, align(8))]
struct Room([u8; CONTROL_LENGTH]);

/// Writes the control message that names this address; its length with the padding.
fn write(from: IpAddr, room: &mut [u8; CONTROL_LENGTH]) -> usize {
    let mut data = [0; 20];
    let (level, kind, length) = match from {
        IpAddr::V4(from) => {
            data[4..8].copy_from_slice(&from.octets());
            (libc::SOL_IP, libc::IP_PKTINFO, 12)
        }
        IpAddr::V6(from) => {
            data[..16].copy_from_slice(&from.octets());
            (libc::SOL_IPV6, libc::IPV6_PKTINFO, 20)
        }
    };
    let end = HEADER + length;
    room[..size_of::<usize>()].copy_from_slice(&end.to_ne_bytes());
    room[HEADER - 8..HEADER - 4].copy_from_slice(&level.to_ne_bytes());
    room[HEADER - 4..HEADER].copy_from_slice(&kind.to_ne_bytes());
    room[HEADER..end].copy_from_slice(&data[..length]);
    end.next_multiple_of(8)
}

fn send_with(socket: impl AsFd, bytes: &[u8], to: SocketAddr, beside: &mut [u8]) -> io::Result<()> {
    let mut data = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all zeroes is a valid message without anything in it.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut data;
    header.msg_iovlen = 1;
    header.msg_control = beside.as_mut_ptr().cast();
    header.msg_controllen = beside.len() as _;
    let send = |address: *const SocketAddrOpaque, length| {
        header.msg_name = address.cast_mut().cast();
        header.msg_namelen = length;
        // SAFETY: every pointer in the header is to memory of the given length that outlives the
        // call, which writes to none of it.
        // JUSTIFICATION: rustix does not write these control messages.
        unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const header, 0) }
    };
    // SAFETY: `send` uses the address while it runs, for as long as that is valid.
    let sent = unsafe { to.with_sockaddr(send) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamps::Stamped;
    use std::net::UdpSocket;

    #[test]
    fn an_answer_leaves_from_the_address_that_was_asked() {
        for (bound, asked) in [
            ("0.0.0.0:0", "127.0.0.2"),
            ("[::]:0", "127.0.0.3"),
            ("[::]:0", "::1"),
            ("127.0.0.1:0", "127.0.0.1"),
        ] {
            let server = UdpSocket::bind(bound).unwrap();
            report_addresses(&server).unwrap();
            let asked: IpAddr = asked.parse().unwrap();
            let own = if asked.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
            let client = UdpSocket::bind(own).unwrap();
            client.connect((asked, server.local_addr().unwrap().port())).unwrap();
            client.send(b"ask").unwrap();
            let stamped = Stamped::new(server.try_clone().unwrap().into(), false).unwrap();
            let mut buffer = [0; 16];
            let received = stamped.receive(&mut buffer).unwrap();
            assert_eq!(received.to, Some(asked));
            send(&server, b"answer", received.from.unwrap(), received.to).unwrap();
            let length = client.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"answer");
        }
    }

    #[test]
    fn addresses_from_which_none_leaves_are_left_out() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        // That of another host.
        let other = Some([192, 0, 2, 1].into());
        send(&server, b"x", client.local_addr().unwrap(), other).unwrap();
        assert_eq!(client.recv(&mut [0; 9]).unwrap(), 1);
        let (level, kind) = (libc::SOL_IPV6, libc::IPV6_PKTINFO);
        let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).octets();
        assert_eq!(address(level, kind, &group), None);
        assert_eq!(address(level, kind, &group[..15]), None);
        assert_eq!(address(libc::SOL_IP, libc::IP_PKTINFO, &[1; 7]), None);
    }
}
