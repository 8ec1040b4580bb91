//! A connection that is being opened: whether each end is who it says.

use std::io;
use std::mem::size_of;
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use base::time::Instant;
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recv, send,
    socket_with,
};

use super::asks::{Nonce, key_of};
use crate::port::{Address, NicId};
use sys::memory::CACHE_LINE;
use sys::option;

/// Bytes of what the caller says first: its NIC, its endpoint, a zero, the nonce it was asked with,
/// and zeros, so that what follows begins at a cache line.
const HELLO: usize = CACHE_LINE;
/// Bytes of the answer: the nonce that the caller has asked for, and zeros.
const WELCOME: usize = CACHE_LINE;
/// Bytes of a nonce.
const NONCE: usize = size_of::<Nonce>();

pub(super) struct Opening {
    stream: TcpStream,
    pub(super) since: Instant,
    came: [u8; HELLO],
    length: usize,
    side: OpeningSide,
}

enum OpeningSide {
    /// A caller has connected.
    Called,
    /// This endpoint has, and has said hello or not.
    Calling { peer: Address, hello: [u8; HELLO], welcome: Nonce, has_greeted: bool },
}

/// What has become of it.
pub(super) enum OpeningStep {
    Waits,
    SaysHello(Address, Nonce),
    IsOpen(Address),
}

impl AsFd for Opening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Opening {
    pub(super) const fn accepted(stream: TcpStream, since: Instant) -> Self {
        Self { stream, since, came: [0; HELLO], length: 0, side: OpeningSide::Called }
    }

    /// Connects `own`, through `interface`, to a peer that has asked with a nonce; it has to answer
    /// with `welcome`.
    pub(super) fn call(
        interface: u32,
        own: (Address, SocketAddrV4),
        (peer, to): (Address, SocketAddrV4),
        (asked, welcome): (Nonce, Nonce),
        since: Instant,
    ) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        only_neighbours(fd.as_fd(), interface)?;
        never_pace(&fd);
        bind(&fd, &SocketAddrV4::new(*own.1.ip(), 0))?;
        match connect(&fd, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(errno.into()),
        }
        let Address { nic: NicId(nic), endpoint } = own.0;
        let mut hello = [0; HELLO];
        hello[..6].copy_from_slice(&nic);
        hello[6] = endpoint;
        hello[8..8 + NONCE].copy_from_slice(&asked.to_be_bytes());
        let side = OpeningSide::Calling { peer, hello, welcome, has_greeted: false };
        Ok(Self { stream: OwnedFd::into(fd), since, came: [0; HELLO], length: 0, side })
    }

    /// The peer that this endpoint connects to, if it was this endpoint that connected.
    pub(super) const fn called(&self) -> Option<Address> {
        match &self.side {
            OpeningSide::Called => None,
            OpeningSide::Calling { peer, .. } => Some(*peer),
        }
    }

    /// Goes on.
    ///
    /// # Errors
    /// If there is no connection, or the other end is not the one that it should be.
    pub(super) fn advance(&mut self) -> io::Result<OpeningStep> {
        let wanted = match &mut self.side {
            OpeningSide::Called => HELLO,
            OpeningSide::Calling { hello, has_greeted, .. } => {
                if !*has_greeted {
                    match say(&self.stream, hello) {
                        // Not connected yet.
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            return Ok(OpeningStep::Waits);
                        }
                        outcome => outcome?,
                    }
                    *has_greeted = true;
                }
                WELCOME
            }
        };
        // Not a byte more: frames may follow.
        let place = &mut self.came[self.length..wanted];
        if !place.is_empty() {
            self.length += match recv(&self.stream, place, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((came, _)) => came,
                Err(Errno::AGAIN) => 0,
                Err(errno) => return Err(errno.into()),
            };
        }
        if self.length < wanted {
            return Ok(OpeningStep::Waits);
        }
        match &self.side {
            OpeningSide::Called => {
                let nonce =
                    self.came[8..].first_chunk().map_or(0, |nonce| u64::from_be_bytes(*nonce));
                let peer = key_of(&self.came).ok_or(io::ErrorKind::InvalidData)?;
                Ok(OpeningStep::SaysHello(peer, nonce))
            }
            OpeningSide::Calling { welcome, peer, .. }
                if self.came[..NONCE] == welcome.to_be_bytes() =>
            {
                Ok(OpeningStep::IsOpen(*peer))
            }
            OpeningSide::Calling { .. } => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    pub(super) fn welcome(&self, nonce: Nonce) -> io::Result<()> {
        let mut welcome = [0; WELCOME];
        welcome[..NONCE].copy_from_slice(&nonce.to_be_bytes());
        say(&self.stream, &welcome)
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.stream
    }
}

/// Sends a few bytes, which fit into an empty queue.
fn say(stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    let sent = send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receivers ask for what they can take, over one segment, so no sender has to pace packets as BBR
/// does. Every process may have this algorithm. It has to be set before there is a connection:
/// pacing that has begun goes on under any other.
pub(super) fn never_pace(socket: impl AsFd) {
    let _ = set_tcp_congestion(socket, "reno");
}

/// Peers are on the segment of the interface. No other address gets a packet: none behind a router,
/// on another interface, or of this host alone.
fn only_neighbours(socket: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    option::set_int(socket, libc::SOL_SOCKET, libc::SO_DONTROUTE, 1)?;
    option::set_int(socket, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX, interface.cast_signed())
}
