//! Sockets that listen by an abstract name.
//!
//! The kernel lets one unix socket have such a name in a network namespace, and takes it away when
//! the last process that has the socket ends or closes it, however that happens. A child that
//! another thread has just forked has the socket, too, until it executes its program: a name that
//! this process has given up may stay taken for so long.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, bind, connect, listen};

use super::PortError;
use sys::peer::Credentials;

/// How long a forked child may take until it executes its program.
const FORKED_FOR: Duration = Duration::from_secs(5);
const TRY_EVERY: Duration = Duration::from_millis(5);

/// What helps if the system gives no descriptors.
pub(super) const REMEDY: &str = "check the limit on open files: ulimit -n";

/// A socket that listens by an abstract name, for as long as this lives.
#[derive(Debug)]
pub(super) struct NameListener {
    name: String,
    socket: OwnedFd,
}

impl NameListener {
    /// Listens by `name` as `endpoint` of `port`, for `backlog` that are not accepted yet; `socket`
    /// makes sockets that do not wait. Waits for children that have the name only because they were
    /// forked.
    ///
    /// # Errors
    /// If another socket has the name, or the system gives none.
    pub(super) fn new(
        name: &str,
        backlog: i32,
        (port, endpoint): (&str, u8),
        socket: impl Fn() -> io::Result<OwnedFd>,
    ) -> Result<Self, PortError> {
        Self::listen(name, backlog, &socket).map_err(|cause| {
            if cause.kind() == io::ErrorKind::AddrInUse {
                let holder = socket().ok().and_then(|socket| holder(name, &socket));
                return PortError::Taken { endpoint, port: port.to_owned(), holder };
            }
            PortError::system("take the name of an endpoint", port, REMEDY)(cause)
        })
    }

    fn listen(
        name: &str,
        backlog: i32,
        socket: &impl Fn() -> io::Result<OwnedFd>,
    ) -> io::Result<Self> {
        let (socket, address) = (socket()?, SocketAddrUnix::new_abstract_name(name.as_bytes())?);
        loop {
            match bind(&socket, &address) {
                Ok(()) => break,
                Err(Errno::ADDRINUSE) if was_given_up(name) => sleep(TRY_EVERY),
                Err(errno) => return Err(errno.into()),
            }
        }
        given_up().retain(|(other, _)| other != name);
        listen(&socket, backlog)?;
        Ok(Self { name: name.to_owned(), socket })
    }
}

impl AsFd for NameListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for NameListener {
    fn drop(&mut self) {
        let mut names = given_up();
        names.retain(|(_, at)| at.elapsed() < FORKED_FOR);
        names.push((std::mem::take(&mut self.name), Instant::now()));
    }
}

/// The names that this process has given up of late, in all its networks, and when.
fn given_up() -> MutexGuard<'static, Vec<(String, Instant)>> {
    static GIVEN_UP: Mutex<Vec<(String, Instant)>> = Mutex::new(Vec::new());
    GIVEN_UP.lock().unwrap_or_else(PoisonError::into_inner)
}

fn was_given_up(name: &str) -> bool {
    given_up().iter().any(|(other, at)| other == name && at.elapsed() < FORKED_FOR)
}

/// The process that listens by a name, if it can be seen from here; `socket` is one of the same
/// kind.
fn holder(name: &str, socket: &OwnedFd) -> Option<u32> {
    connect(socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).ok()?).ok()?;
    let process = Credentials::of(socket).ok()?.process?;
    Some(process.as_raw_nonzero().get().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

    use super::*;

    fn open(test: &str) -> Result<NameListener, PortError> {
        let name = format!("earmark-mx/test/{test}/{}", std::process::id());
        let socket = || {
            let (kind, flags) = (SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC);
            Ok(socket_with(AddressFamily::UNIX, kind, flags, None)?)
        };
        NameListener::new(&name, 1, ("eth0", 3), socket)
    }

    fn is_taken(test: &str) -> bool {
        matches!(open(test), Err(PortError::Taken { .. }))
    }

    /// A descriptor that is a copy, as a child has it between `fork` and `execve`.
    #[test]
    fn name_that_was_given_up_is_waited_for() {
        let listener = open("forked").unwrap();
        let copy = listener.socket.try_clone().unwrap();
        drop(listener);
        let child = std::thread::spawn(move || {
            sleep(TRY_EVERY * 4);
            drop(copy);
        });
        let _again = open("forked").unwrap();
        child.join().unwrap();
        assert!(is_taken("forked"));
    }

    #[test]
    fn name_that_another_has_for_good_is_refused() {
        let listener = open("kept").unwrap();
        let copy = listener.socket.try_clone().unwrap();
        drop(listener);
        assert!(is_taken("kept"));
        drop(copy);
        open("kept").unwrap();
    }
}
