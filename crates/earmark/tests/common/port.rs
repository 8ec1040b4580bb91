//! Ports for servers that are about to start, or that never do.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

/// A TCP port of the loopback. It is bound, so the kernel assigns it to no other socket, and it
/// does not listen, so a server that sets `SO_REUSEADDR`, as servers do, may listen on it.
pub(crate) struct HeldPort {
    pub(crate) number: u16,
    _holder: OwnedFd,
}

impl HeldPort {
    pub(crate) fn new() -> Self {
        let holder = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        set_socket_reuseaddr(&holder, true).unwrap();
        bind(&holder, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = SocketAddr::try_from(getsockname(&holder).unwrap()).unwrap();
        Self { number: address.port(), _holder: holder }
    }
}
