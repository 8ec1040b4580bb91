//! Raw Ethernet frames out through one interface. Nothing comes back.

use super::poller::{Poller, Ready};
use super::port::{Arrival, Port};
use super::udp::send_batch;
use rustix::fd::OwnedFd;
use std::io;
use workload::ConnectionId;

pub(super) struct FrameSocket {
    interface: String,
    socket: OwnedFd,
}

impl FrameSocket {
    pub(super) fn open(interface: &str) -> Result<Self, String> {
        let socket = sys::packet::open_sender(interface).map_err(|error| error.to_string())?;
        Ok(Self { interface: interface.to_owned(), socket })
    }
}

impl Port for FrameSocket {
    fn address(&self) -> String {
        self.interface.clone()
    }

    fn send(&mut self, _: &Poller, connection: ConnectionId, bytes: &[u8]) -> io::Result<usize> {
        self.send_batch(connection, bytes, bytes.len()).map(|()| 0)
    }

    fn send_batch(&mut self, _: ConnectionId, bytes: &[u8], each: usize) -> io::Result<()> {
        send_batch(&self.socket, bytes, each).map(|_| ())
    }

    fn receive(&mut self, _: &Poller, _: Ready, _: &mut [u8]) -> io::Result<Arrival> {
        Ok(Arrival::Nothing)
    }
}
