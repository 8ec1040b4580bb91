//! A workload over ICMP echo: it sees payloads only.

use super::poller::{Poller, Ready};
use super::port::{Arrival, Port, explain};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::net::{IpAddr, SocketAddr};
use sys::icmp;
use sys::wait::wait_writable;
use workload::ConnectionId;

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
    pub(super) fn connect(
        poller: &Poller,
        address: SocketAddr,
        connections: usize,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| explain("ICMP socket to", address.ip(), &error);
        let (mut sockets, mut raw) = (Vec::new(), false);
        for token in 0..connections as u64 {
            let (socket, is_raw) = icmp::open(address, icmp::PING_FIRST).map_err(failed)?;
            poller.add(&socket, token).map_err(failed)?;
            sockets.push(socket);
            raw = is_raw;
        }
        let identifier = icmp::identifier();
        let packet = Vec::with_capacity(65_536);
        Ok(Self { address: address.ip(), sockets, raw, identifier, sequence: 0, packet })
    }
}

impl Port for Icmp {
    fn address(&self) -> String {
        self.address.to_string()
    }

    fn send(&mut self, _: &Poller, connection: ConnectionId, bytes: &[u8]) -> io::Result<usize> {
        let identifier = self.identifier.wrapping_add(connection as u16);
        icmp::encode(&mut self.packet, identifier, self.sequence, bytes);
        self.sequence = self.sequence.wrapping_add(1);
        loop {
            match send(&self.sockets[connection], &self.packet, SendFlags::empty()) {
                Ok(_) => return Ok(0),
                Err(Errno::AGAIN) => wait_writable(&self.sockets[connection], None)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn receive(&mut self, _: &Poller, ready: Ready, buffer: &mut [u8]) -> io::Result<Arrival> {
        let connection = ready.token as ConnectionId;
        let identifier = self.identifier.wrapping_add(connection as u16);
        let length = match recv(&self.sockets[connection], &mut *buffer, RecvFlags::empty()) {
            Ok((length, _)) => length,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Arrival::Nothing),
            Err(error) => return Err(error.into()),
        };
        let Some(start) = icmp::payload_start(&buffer[..length], self.raw.then_some(identifier))
        else {
            return Ok(Arrival::Nothing);
        };
        buffer.copy_within(start..length, 0);
        Ok(Arrival::Bytes(connection, length - start))
    }
}
