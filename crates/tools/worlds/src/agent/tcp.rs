//! TCP: client connections, or a listener and the connections it accepted.

use super::poller::{Poller, Ready};
use super::port::{Arrival, Port, explain};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};
use workload::ConnectionId;

const LISTENER: u64 = u64::MAX - 1;
/// How long a client keeps trying to connect, while its server starts.
const CONNECT_FOR: Duration = Duration::from_secs(5);

/// How long a server for another host waits for its port; less than a parent waits for an agent.
const LISTEN_FOR: Duration = Duration::from_secs(8);

/// The most connections that are accepted before those that are there are read again.
const ACCEPTS: usize = 32;

/// Between two attempts of either.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// One connection and what the kernel has not taken from us yet.
struct PeerStream {
    socket: TcpStream,
    backlog: Vec<u8>,
    /// How much of the backlog's start the kernel has taken.
    taken: usize,
}

pub(super) struct Tcp {
    address: SocketAddr,
    listener: Option<TcpListener>,
    /// The only address that a server serves; none: all.
    only: Option<IpAddr>,
    /// By connection; a closed one leaves its place empty.
    streams: Vec<Option<PeerStream>>,
}

impl Tcp {
    pub(super) fn connect(
        poller: &Poller,
        address: SocketAddr,
        connections: usize,
    ) -> Result<Self, String> {
        let mut port =
            Self { address, listener: None, only: None, streams: Vec::with_capacity(connections) };
        for _ in 0..connections {
            let stream = connect(address).map_err(|e| explain("connect to", address, &e))?;
            port.add(poller, stream).map_err(|e| explain("set up connection to", address, &e))?;
        }
        Ok(port)
    }

    /// Listens, for all or for one address only. For another host it waits for its port: the run
    /// before it, or one of a third host, may be about to end.
    pub(super) fn listen(
        poller: &Poller,
        address: SocketAddr,
        only: Option<IpAddr>,
    ) -> Result<Self, String> {
        let give_up = Instant::now() + if only.is_some() { LISTEN_FOR } else { Duration::ZERO };
        let in_use = |error: &io::Error| error.kind() == ErrorKind::AddrInUse;
        let listen = || {
            let listener = again_until(give_up, in_use, || TcpListener::bind(address))?;
            listener.set_nonblocking(true)?;
            poller.add_socket(&listener, LISTENER)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = listen().map_err(|e| explain("listen at", address, &e))?;
        Ok(Self { address, listener: Some(listener), only, streams: Vec::with_capacity(64) })
    }

    fn add(&mut self, poller: &Poller, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        poller.add_socket(&socket, self.streams.len() as u64)?;
        self.streams.push(Some(PeerStream { socket, backlog: Vec::new(), taken: 0 }));
        Ok(())
    }

    fn accept(&mut self, poller: &Poller) -> io::Result<()> {
        for _ in 0..ACCEPTS {
            let Some(listener) = &self.listener else { break };
            match listener.accept() {
                // It is closed at once.
                Ok((_, from)) if self.only.is_some_and(|only| only != from.ip().to_canonical()) => {
                }
                Ok((socket, _)) => self.add(poller, socket)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The client changed its mind; the next one may not.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Connects, trying again while there is no listener yet.
fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let give_up = Instant::now() + CONNECT_FOR;
    let may_come = |error: &io::Error| error.kind() != ErrorKind::InvalidInput;
    again_until(give_up, may_come, || {
        let left = give_up.saturating_duration_since(Instant::now());
        TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1)))
    })
}

/// What `attempt` gives in the end: it is repeated after errors that `may_pass`, until `give_up`.
fn again_until<T>(
    give_up: Instant,
    may_pass: impl Fn(&io::Error) -> bool,
    attempt: impl Fn() -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if Instant::now() < give_up && may_pass(&error) => sleep(RETRY_AFTER),
            result => return result,
        }
    }
}

impl PeerStream {
    /// Hands the kernel as much as it takes; returns how much is left.
    fn flush(&mut self) -> io::Result<usize> {
        while self.taken < self.backlog.len() {
            match self.socket.write(&self.backlog[self.taken..]) {
                Ok(written) => self.taken += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.taken == self.backlog.len() {
            self.backlog.clear();
            self.taken = 0;
        }
        Ok(self.backlog.len() - self.taken)
    }
}

/// A peer that goes away in the middle has closed, in its way.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

impl Port for Tcp {
    fn address(&self) -> String {
        self.address.to_string()
    }

    fn sockets(&self) -> u64 {
        self.streams.len() as u64
    }

    fn send(
        &mut self,
        poller: &Poller,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let Some(Some(stream)) = self.streams.get_mut(connection) else {
            return Ok(0);
        };
        let mut written = 0;
        if stream.backlog.is_empty() {
            match stream.socket.write(bytes) {
                Ok(n) => written = n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The end shows when it is read.
                Err(error) if is_end(&error) => return Ok(0),
                Err(error) => return Err(error),
            }
            if written == bytes.len() {
                return Ok(0);
            }
            poller.want_write(&stream.socket, connection as u64, true)?;
        }
        stream.backlog.extend_from_slice(&bytes[written..]);
        Ok(stream.backlog.len() - stream.taken)
    }

    fn receive(&mut self, poller: &Poller, ready: Ready, buffer: &mut [u8]) -> io::Result<Arrival> {
        if ready.token == LISTENER {
            self.accept(poller)?;
            return Ok(Arrival::Nothing);
        }
        let connection = ready.token as ConnectionId;
        let Some(Some(stream)) = self.streams.get_mut(connection) else {
            return Ok(Arrival::Nothing);
        };
        if ready.writable && !stream.backlog.is_empty() {
            match stream.flush() {
                Ok(0) => {
                    poller.want_write(&stream.socket, ready.token, false)?;
                    // What can be read as well is reported again by the next wait.
                    return Ok(Arrival::Drained(connection));
                }
                Ok(_) => {}
                Err(error) if is_end(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if !ready.readable {
            return Ok(Arrival::Nothing);
        }
        match stream.socket.read(buffer) {
            Ok(0) => {}
            Ok(read) => return Ok(Arrival::Bytes(connection, read)),
            Err(error) if is_end(&error) => {}
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(Arrival::Nothing);
            }
            Err(error) => return Err(error),
        }
        // Closing the socket also takes it off the poller.
        self.streams[connection] = None;
        Ok(Arrival::Closed(connection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::polling::Polling;

    #[test]
    fn connections_are_read_however_many_others_come() {
        let poller = Poller::new(Polling::default()).unwrap();
        let mut port = Tcp::listen(&poller, "127.0.0.1:0".parse().unwrap(), None).unwrap();
        let address = port.address;
        let connect = |_| TcpStream::connect(address).unwrap();
        let waiting: Vec<TcpStream> = (0..ACCEPTS + 1).map(connect).collect();
        let ready = Ready { token: LISTENER, writable: false, readable: true };
        assert_eq!(port.receive(&poller, ready, &mut []).unwrap(), Arrival::Nothing);
        assert_eq!(port.streams.len(), ACCEPTS);
        assert_eq!(port.receive(&poller, ready, &mut []).unwrap(), Arrival::Nothing);
        assert_eq!(port.streams.len(), waiting.len());
    }
}
