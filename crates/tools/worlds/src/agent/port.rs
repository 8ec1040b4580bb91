//! The seam between the driver and the transports.

use super::poller::{Poller, Ready};
use std::fmt::Display;
use std::io;
use workload::ConnectionId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// So many bytes are at the start of the buffer.
    Bytes(ConnectionId, usize),
    /// Everything that this connection had in its backlog is with the kernel now.
    Drained(ConnectionId),
    Closed(ConnectionId),
    /// Nothing for the workload.
    Nothing,
}

pub(super) trait Port {
    /// The address it is bound to, or its peer's.
    fn address(&self) -> String;

    /// Takes all bytes; returns how many of them (and of earlier ones) the kernel has not taken
    /// yet.
    fn send(
        &mut self,
        poller: &Poller,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> io::Result<usize>;

    /// Sends datagrams of `datagram_bytes` each.
    fn send_batch(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        each: usize,
    ) -> io::Result<()> {
        let _ = (connection, bytes, each);
        Err(io::Error::new(io::ErrorKind::Unsupported, "this transport sends no batches"))
    }

    /// Does one read (or accept, or write of what was left over) on a socket that is ready.
    fn receive(&mut self, poller: &Poller, ready: Ready, buffer: &mut [u8]) -> io::Result<Arrival>;

    /// How many sockets there are to read from; their tokens are the numbers from 0.
    fn sockets(&self) -> u64 {
        0
    }

    /// How many reads to do on a ready socket before asking the kernel again which ones are ready.
    /// One keeps many connections in the order of arrival; more spare a system call each where one
    /// socket has them all.
    fn reads_per_wakeup(&self) -> u32 {
        1
    }

    /// How often a peer's host reported that no process listens there.
    fn refused(&self) -> u64 {
        0
    }
}

/// An error message that names the operation, its object, the cause, and what to do.
pub(super) fn explain(operation: &str, object: impl Display, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::ConnectionRefused => "; is the server agent up?",
        io::ErrorKind::AddrInUse => "; stop what listens there or choose another port",
        io::ErrorKind::AddrNotAvailable => "; no interface of this host has that address",
        io::ErrorKind::PermissionDenied => "; it needs root, or a namespace of its own",
        io::ErrorKind::TimedOut => "; is the peer up and reachable?",
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            "; check addresses and routes with: ip addr; ip route"
        }
        _ => "",
    };
    // The standard library appends "(os error N)", which tells users nothing.
    let cause = error.to_string();
    let cause = cause.split(" (os error").next().unwrap_or_default();
    format!("{operation} {object}: {cause}{advice}")
}
