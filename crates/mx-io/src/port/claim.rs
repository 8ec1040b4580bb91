//! A claim makes sure that an endpoint number of an interface is used once.
//!
//! A claim is a unix socket with an abstract name: the kernel lets one socket have it in a network
//! namespace, and takes it away when the last process that has the socket ends, however that
//! happens. The socket listens, so that whoever comes second can ask the kernel who was first.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use super::{PortError, socket};

/// How long this process may be the holder although it has dropped its claim: a child that another
/// thread has just forked has the socket, too, until it executes its program.
const FORKED_FOR: Duration = Duration::from_secs(1);
const TRY_EVERY: Duration = Duration::from_millis(5);

const REMEDY: &str = "check the limit on open files: ulimit -n";

/// An endpoint number of an interface, for as long as this lives.
#[derive(Debug)]
pub struct Claim {
    name: String,
    socket: Option<OwnedFd>,
}

impl Claim {
    /// Claims `endpoint` of the interface with this index in the network of this thread; `port` is
    /// what errors call it.
    ///
    /// # Errors
    /// If somebody else has it.
    pub fn new(port: &str, index: u32, endpoint: u8) -> Result<Self, PortError> {
        let name = format!("earmark-mx/{index}/{endpoint}");
        let refused = |errno: Errno| {
            PortError::system("claim an endpoint", port, REMEDY)(io::Error::from(errno))
        };
        let mut holder = None;
        let start = Instant::now();
        loop {
            match take(name.as_bytes()) {
                Ok(socket) => {
                    claimed().push(name.clone());
                    return Ok(Self { name, socket: Some(socket) });
                }
                Err(Errno::ADDRINUSE) => {}
                Err(errno) => return Err(refused(errno)),
            }
            // Asked once: each who asks takes a place among those that wait to be accepted.
            let holder = *holder.get_or_insert_with(|| self::holder(name.as_bytes()));
            let is_dropped = || holder == Some(std::process::id()) && !claimed().contains(&name);
            if !is_dropped() || start.elapsed() > FORKED_FOR {
                return Err(PortError::Taken { endpoint, port: port.to_owned(), holder });
            }
            sleep(TRY_EVERY);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = claimed();
        self.socket = None;
        if let Some(at) = claimed.iter().position(|name| *name == self.name) {
            claimed.swap_remove(at);
        }
    }
}

/// What this process claims, in all its networks: a name that is not among them and has this
/// process as its holder has been dropped.
fn claimed() -> MutexGuard<'static, Vec<String>> {
    static CLAIMED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The index of no interface, which other runs of these tests do not use.
    fn index(test: u32) -> u32 {
        u32::MAX - 4 * std::process::id() - test
    }

    #[test]
    fn second_claim_is_refused_and_names_the_holder() {
        let first = Claim::new("eth0", index(0), 3).unwrap();
        let error = Claim::new("eth0", index(0), 3).unwrap_err().to_string();
        let by = format!("endpoint 3 of eth0: it is taken by process {}", std::process::id());
        assert!(error.contains(&by), "{error}");
        let other = Claim::new("eth0", index(0), 4);
        assert!(other.is_ok());
        drop(first);
        Claim::new("eth0", index(0), 3).unwrap();
    }

    /// A descriptor that is a copy, as a child has it between `fork` and `execve`.
    #[test]
    fn claim_that_was_dropped_is_waited_for() {
        let claim = Claim::new("eth0", index(2), 3).unwrap();
        let copy = claim.socket.as_ref().unwrap().try_clone().unwrap();
        drop(claim);
        let child = std::thread::spawn(move || {
            sleep(TRY_EVERY * 4);
            drop(copy);
        });
        Claim::new("eth0", index(2), 3).unwrap();
        child.join().unwrap();
    }

    #[test]
    fn many_who_ask_do_not_block() {
        let _first = Claim::new("eth0", index(1), 3).unwrap();
        for _ in 0..50 {
            assert!(matches!(Claim::new("eth0", index(1), 3), Err(PortError::Taken { .. })));
        }
    }
}
