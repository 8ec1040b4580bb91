//! That an endpoint number of an interface is used once.
//!
//! A claim is a unix socket with an abstract name: the kernel lets one socket have it in a network
//! namespace, and takes it away when the last process that has the socket ends, however that
//! happens. The socket listens, so that whoever comes second can ask the kernel who was first.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use super::{PortError, socket};

const REMEDY: &str = "check the limit on open files: ulimit -n";

/// An endpoint number of an interface, for as long as this lives.
#[derive(Debug)]
pub struct Claim {
    _socket: OwnedFd,
}

impl Claim {
    /// Claims `endpoint` of the interface with this index in the network of this thread; `port` is
    /// what errors call it.
    ///
    /// # Errors
    /// If somebody else has it.
    pub fn new(port: &str, index: u32, endpoint: u8) -> Result<Self, PortError> {
        let name = format!("earmark-mx/{index}/{endpoint}");
        match take(name.as_bytes()) {
            Ok(socket) => Ok(Self { _socket: socket }),
            Err(Errno::ADDRINUSE) => {
                let holder = holder(name.as_bytes());
                Err(PortError::Taken { endpoint, port: port.to_owned(), holder })
            }
            Err(errno) => {
                Err(PortError::system("claim an endpoint", port, REMEDY)(io::Error::from(errno)))
            }
        }
    }
}

fn unix_socket() -> rustix::io::Result<OwnedFd> {
    // A full backlog must not block whoever asks for the holder.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn take(name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let socket = unix_socket()?;
    bind(&socket, &SocketAddrUnix::new_abstract_name(name)?)?;
    listen(&socket, 1)?;
    Ok(socket)
}

/// The process that has a name, if it can be seen from here.
fn holder(name: &[u8]) -> Option<u32> {
    let socket = unix_socket().ok()?;
    connect(&socket, &SocketAddrUnix::new_abstract_name(name).ok()?).ok()?;
    let [pid, _user, _group] =
        socket::words(socket.as_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED).ok()?;
    (pid != 0).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No interface has this index.
    const INDEX: u32 = u32::MAX;

    #[test]
    fn second_claim_is_refused_and_names_the_holder() {
        let first = Claim::new("eth0", INDEX, 3).unwrap();
        let error = Claim::new("eth0", INDEX, 3).unwrap_err().to_string();
        let by = format!("endpoint 3 of eth0: it is taken by process {}", std::process::id());
        assert!(error.contains(&by), "{error}");
        let other = Claim::new("eth0", INDEX, 4);
        assert!(other.is_ok());
        drop(first);
        Claim::new("eth0", INDEX, 3).unwrap();
    }

    #[test]
    fn many_who_ask_do_not_block() {
        let _first = Claim::new("eth0", INDEX - 1, 3).unwrap();
        for _ in 0..50 {
            assert!(matches!(Claim::new("eth0", INDEX - 1, 3), Err(PortError::Taken { .. })));
        }
    }
}
