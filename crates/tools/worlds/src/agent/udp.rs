//! UDP: a connected socket per client connection, or one server socket that numbers its peers.

use super::poller::{Poller, Ready};
use super::port::{Arrival, Port, explain};
use rustix::fd::AsFd;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};
use std::collections::HashMap;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use sys::wait::wait_writable;
use workload::ConnectionId;

/// How many datagrams one `sendmmsg` carries.
const BATCH: usize = 32;

pub(super) struct Udp {
    address: SocketAddr,
    /// A client's, by connection; or a server's only one.
    sockets: Vec<UdpSocket>,
    /// A server's peers, by connection. Empty for a client.
    peers: Vec<SocketAddr>,
    numbers: HashMap<SocketAddr, ConnectionId>,
    is_server: bool,
    refused: u64,
}

impl Udp {
    pub(super) fn connect(
        poller: &Poller,
        address: SocketAddr,
        connections: usize,
    ) -> Result<Self, String> {
        let any = match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let open = |token: usize| {
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect(address)?;
            socket.set_nonblocking(true)?;
            poller.add_socket(&socket, token as u64)?;
            Ok(socket)
        };
        let sockets: io::Result<Vec<_>> = (0..connections).map(open).collect();
        let sockets = sockets.map_err(|error| explain("connect to", address, &error))?;
        Ok(Self::new(address, sockets, false))
    }

    pub(super) fn listen(poller: &Poller, address: SocketAddr) -> Result<Self, String> {
        let open = || {
            let socket = UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            poller.add_socket(&socket, 0)?;
            Ok((socket.local_addr()?, socket))
        };
        let (address, socket) = open().map_err(|error| explain("listen at", address, &error))?;
        Ok(Self::new(address, vec![socket], true))
    }

    fn new(address: SocketAddr, sockets: Vec<UdpSocket>, is_server: bool) -> Self {
        let (peers, numbers) = (Vec::with_capacity(64), HashMap::with_capacity(64));
        Self { address, sockets, peers, numbers, is_server, refused: 0 }
    }

    fn number(&mut self, peer: SocketAddr) -> ConnectionId {
        *self.numbers.entry(peer).or_insert_with(|| {
            self.peers.push(peer);
            self.peers.len() - 1
        })
    }
}

/// Sends datagrams of `each` bytes through a connected or bound socket, `BATCH` a system call.
/// Returns how often the peer's host refused one.
pub(super) fn send_batch(socket: impl AsFd, bytes: &[u8], each: usize) -> io::Result<u64> {
    let mut rest = bytes;
    let mut refused = 0;
    while !rest.is_empty() {
        let slices: [IoSlice<'_>; BATCH] = std::array::from_fn(|index| {
            let from = (index * each).min(rest.len());
            IoSlice::new(&rest[from..(from + each).min(rest.len())])
        });
        let mut controls: [_; BATCH] = std::array::from_fn(|_| SendAncillaryBuffer::default());
        let mut control = controls.iter_mut();
        let mut messages: [_; BATCH] = std::array::from_fn(|index| {
            let control = control.next().expect("as many as messages");
            MMsgHdr::new(&slices[index..=index], control)
        });
        let count = (rest.len() / each).min(BATCH);
        match sendmmsg(&socket, &mut messages[..count], SendFlags::empty()) {
            Ok(sent) => rest = &rest[sent * each..],
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::NOBUFS) => {
                wait_writable(&socket, None)?;
            }
            Err(rustix::io::Errno::INTR) => {}
            // The answer to an earlier datagram; the error is cleared by being reported.
            Err(rustix::io::Errno::CONNREFUSED) => refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(refused)
}

impl Port for Udp {
    fn address(&self) -> String {
        self.address.to_string()
    }

    fn send(&mut self, _: &Poller, connection: ConnectionId, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let sent = if self.is_server {
                self.sockets[0].send_to(bytes, self.peers[connection])
            } else {
                self.sockets[connection].send(bytes)
            };
            match sent {
                Ok(_) => return Ok(0),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let socket = &self.sockets[if self.is_server { 0 } else { connection }];
                    wait_writable(socket, None)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => self.refused += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn send_batch(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        each: usize,
    ) -> io::Result<()> {
        self.refused += send_batch(&self.sockets[connection], bytes, each)?;
        Ok(())
    }

    fn receive(&mut self, _: &Poller, ready: Ready, buffer: &mut [u8]) -> io::Result<Arrival> {
        let socket = ready.token as usize;
        let received = if self.is_server {
            self.sockets[socket].recv_from(buffer).map(|(bytes, peer)| (bytes, self.number(peer)))
        } else {
            self.sockets[socket].recv(buffer).map(|bytes| (bytes, socket))
        };
        match received {
            Ok((bytes, connection)) => Ok(Arrival::Bytes(connection, bytes)),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.refused += 1;
                Ok(Arrival::Nothing)
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(Arrival::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    fn sockets(&self) -> u64 {
        self.sockets.len() as u64
    }

    fn reads_per_wakeup(&self) -> u32 {
        if self.is_server { 64 } else { 1 }
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}
