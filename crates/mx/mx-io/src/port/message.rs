//! Headers and control messages of `sendmmsg` and `recvmmsg`.

use std::io;
use std::mem::{offset_of, size_of};
use std::net::SocketAddrV4;

use rustix::io::Errno;

/// The most bytes of one datagram, and of several that the kernel takes for one.
pub(super) const MAX_DATAGRAM: usize = 65_507;

pub(super) const NO_SLICE: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

pub(super) const NO_MESSAGE: libc::mmsghdr = {
    // SAFETY: null pointers and lengths of 0 are a message without content.
    // JUSTIFICATION: on some targets it has padding that only this fills.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_iovlen = 1;
    message
};

pub(super) fn sockaddr(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

pub(super) fn is_same(a: &libc::sockaddr_in, b: &libc::sockaddr_in) -> bool {
    (a.sin_addr.s_addr, a.sin_port) == (b.sin_addr.s_addr, b.sin_port)
}

/// A control message with one number: how long the datagrams are that were, or are to become, one
/// (`UDP_SEGMENT`, `UDP_GRO` of Linux, `include/uapi/linux/udp.h`).
///
/// It is aligned as the kernel's are, and so as long as those, whatever libc says of its header.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Control {
    header: libc::cmsghdr,
    value: [u8; 4],
}

impl Control {
    pub(super) const NONE: Self = Self {
        // SAFETY: numbers only.
        // JUSTIFICATION: on some targets it has padding that only this fills.
        header: unsafe { std::mem::zeroed() },
        value: [0; 4],
    };

    /// Asks to take a datagram apart, each part so many bytes.
    pub(super) fn segments_of(bytes: u16) -> Self {
        let mut control = Self::NONE;
        control.header.cmsg_level = libc::SOL_UDP;
        control.header.cmsg_type = libc::UDP_SEGMENT;
        control.header.cmsg_len = (offset_of!(Self, value) + size_of::<u16>()) as _;
        control.value[..2].copy_from_slice(&bytes.to_ne_bytes());
        control
    }

    /// How long the datagrams were that have become one, if so; of a control message whose length
    /// the kernel has returned.
    pub(super) fn merged_from(&self, length: usize) -> Option<usize> {
        let is_it = length >= offset_of!(Self, value) + size_of::<libc::c_int>()
            && (self.header.cmsg_level, self.header.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO);
        let bytes = usize::try_from(libc::c_int::from_ne_bytes(self.value)).ok()?;
        (is_it && bytes > 0).then_some(bytes)
    }
}

/// Whether the kernel or the interface may not be able to take a datagram apart: it is too old, has
/// to encrypt it, or the interface cannot write checksums.
pub(super) fn refuses_segments(errno: Errno) -> bool {
    [Errno::INVAL, Errno::IO, Errno::MSGSIZE, Errno::OPNOTSUPP, Errno::NOPROTOOPT].contains(&errno)
}

/// What the kernel said to the last call of libc.
pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}
