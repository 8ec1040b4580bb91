//! Packet sockets: Ethernet frames out through an interface, as they are, and packets of an
//! interface without taking them from anyone.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::option;
use crate::stamps::Stamped;

/// Why a packet socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// The kernel gave no socket.
    #[error("open a packet socket: {0}; it needs root, or a network namespace of its own")]
    Open(#[source] io::Error),
    /// There is no interface of that name.
    #[error("find interface {0}: {1}; list those of this host with: ip link")]
    Interface(String, #[source] io::Error),
    /// The socket could not be tied to the interface.
    #[error("bind a packet socket to {0}: {1}; is the interface up? ip link set {0} up")]
    Bind(String, #[source] io::Error),
}

/// Opens a non-blocking socket in the caller's network namespace that sends whole frames, from the
/// Ethernet header on, through `interface`. It receives nothing.
///
/// # Errors
///
/// The caller lacks `CAP_NET_RAW`, or the interface does not exist.
pub fn open_sender(interface: &str) -> Result<OwnedFd, PacketError> {
    // Protocol 0: no frame is ever queued for a socket without a reader.
    let socket = unbound().map_err(|error| PacketError::Open(error.into()))?;
    let index = name_to_index(&socket, interface)
        .map_err(|error| PacketError::Interface(interface.into(), error.into()))?;
    bind(socket.as_fd(), index, 0).map_err(|cause| PacketError::Bind(interface.into(), cause))?;
    Ok(socket)
}

/// Bytes of packets that wait to be read, at most, where the kernel allows that many.
const LISTENER_ROOM: libc::c_int = 64 << 20;

/// Opens a non-blocking socket that sees all packets of `interface`, from their network header on,
/// those that this host sends among them, with stamps.
///
/// # Errors
///
/// The caller lacks `CAP_NET_RAW`, or the interface does not exist.
pub fn open_listener(interface: &str) -> Result<Stamped, PacketError> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, None)
        .map_err(|error| PacketError::Open(error.into()))?;
    let index = name_to_index(&socket, interface)
        .map_err(|error| PacketError::Interface(interface.into(), error.into()))?;
    // Root may have more than the limit; others get what the limit allows.
    let room = [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF];
    let _ = room.into_iter().try_for_each(|of| {
        match option::set_int(&socket, libc::SOL_SOCKET, of, LISTENER_ROOM) {
            Ok(()) => Err(()),
            Err(_) => Ok(()),
        }
    });
    let stamped = Stamped::new(socket, false).map_err(PacketError::Open)?;
    bind(stamped.socket().as_fd(), index, libc::ETH_P_ALL as u16)
        .map_err(|cause| PacketError::Bind(interface.into(), cause))?;
    Ok(stamped)
}

/// Packets that found no room at a packet socket since the last time that it was asked.
pub fn missed(socket: impl AsFd) -> io::Result<u32> {
    let [_, dropped] = option::words(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
    Ok(dropped)
}

/// A non-blocking packet socket for whole frames, to which nothing comes before it is bound.
pub fn unbound() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
}

/// Ties a packet socket to the interface of this index. It receives frames of `ether_type` from
/// then on; none, if that is 0.
pub fn bind(socket: BorrowedFd<'_>, index: u32, ether_type: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ether_type.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` is a whole link-layer address of `length` bytes that outlives the call, and
    // `socket` is open.
    // JUSTIFICATION: rustix has no link-layer addresses.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if bound == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
