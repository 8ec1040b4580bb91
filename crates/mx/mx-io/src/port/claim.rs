//! A claim makes sure that an endpoint number of an interface is used once.
//!
//! A claim is the abstract name of a unix socket (`name.rs`). The socket listens, so that a
//! process that comes second can ask the kernel which was first.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::PortError;
use super::name::NameListener;

/// An endpoint number of an interface, for as long as this lives.
#[derive(Debug)]
pub struct Claim {
    _listener: NameListener,
}

impl Claim {
    /// Claims `endpoint` of the interface with this index in the network of this thread; `port` is
    /// what errors call it.
    ///
    /// # Errors
    /// If another process has it.
    pub fn new(port: &str, index: u32, endpoint: u8) -> Result<Self, PortError> {
        let name = format!("earmark-mx/{index}/{endpoint}");
        let listener = NameListener::new(&name, 1, (port, endpoint), unix_socket)?;
        Ok(Self { _listener: listener })
    }
}

fn unix_socket() -> io::Result<OwnedFd> {
    // A full backlog must not block a process that asks for the holder.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index of no interface, which other runs of these tests do not use.
    fn index(test: u32) -> u32 {
        u32::MAX - 4 * std::process::id() - test
    }

    #[test]
    fn many_who_ask_do_not_block() {
        let _first = Claim::new("eth0", index(1), 3).unwrap();
        for _ in 0..50 {
            assert!(matches!(Claim::new("eth0", index(1), 3), Err(PortError::Taken { .. })));
        }
    }
}
