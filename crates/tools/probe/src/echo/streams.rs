//! The echo of streams: one thread, and a bounded number of connections.
//!
//! A connection has at most one piece that the other side has not taken yet; until it has, no more
//! is read from it. One that has been silent for long is closed. Where all places are taken, the
//! one that has been silent for longest makes room, unless that is not long at all. While there are
//! no descriptors, new connections wait in the kernel.

use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use sys::refusals::{Refusals, counted_as, is_allowed};

const MAX: usize = 256;

const MAX_PER_ADDRESS: usize = 64;

/// The longest piece that is sent back at once, in bytes.
const PIECE: usize = 4_096;

/// A connection that has been silent for so long is closed.
const SILENT_FOR: Duration = Duration::from_secs(300);

/// One that has been silent for so long may have to make room.
const IDLE_AFTER: Duration = Duration::from_secs(5);

/// The most connections that are accepted before those that are there have their turn.
const ACCEPTS: usize = 32;

/// How long no connection is accepted after one that could not be.
const PAUSE: Duration = Duration::from_millis(100);

struct Connection {
    stream: TcpStream,
    from: IpAddr,
    heard: Instant,
    unsent: Vec<u8>,
}

struct Streams<'a> {
    listener: &'a TcpListener,
    allow: &'a [IpAddr],
    refusals: &'a Refusals,
    connections: Vec<Connection>,
    /// No connection is accepted before.
    paused_until: Option<Instant>,
}

/// Sends back what comes.
pub(super) fn serve(
    listener: &TcpListener,
    allow: &[IpAddr],
    refusals: &Refusals,
) -> io::Result<Infallible> {
    listener.set_nonblocking(true)?;
    let (connections, paused_until) = (Vec::new(), None);
    let mut streams = Streams { listener, allow, refusals, connections, paused_until };
    loop {
        streams.turn()?;
    }
}

impl Streams<'_> {
    fn turn(&mut self) -> io::Result<()> {
        let now = Instant::now();
        self.connections.retain(|one| now < one.heard + SILENT_FOR);
        self.paused_until = self.paused_until.filter(|until| now < *until);
        let next_end = self.connections.iter().map(|one| one.heard + SILENT_FOR).min();
        let until = [next_end, self.paused_until].into_iter().flatten().min();
        let mut ready = self.wait(until.map(|until| until.saturating_duration_since(now)))?;
        let listener_is_ready = ready.pop() == Some(true);
        let mut ready = ready.into_iter();
        self.connections.retain_mut(|one| ready.next() != Some(true) || one.serve().is_ok());
        if listener_is_ready {
            self.accept();
        }
        Ok(())
    }

    /// Which connections are ready, and, last, whether the listener is.
    fn wait(&self, left: Option<Duration>) -> io::Result<Vec<bool>> {
        let mut fds: Vec<PollFd<'_>> =
            self.connections.iter().map(|one| PollFd::new(&one.stream, one.awaits())).collect();
        let accepts = if self.paused_until.is_none() { PollFlags::IN } else { PollFlags::empty() };
        fds.push(PollFd::new(self.listener, accepts));
        let left = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        match poll(&mut fds, left.as_ref()) {
            Ok(_) => Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect()),
            Err(rustix::io::Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            match self.listener.accept() {
                Ok((stream, from)) => self.take(stream, from.ip().to_canonical()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(_) => {
                    // No descriptors or no memory; there may be some when a connection has ended.
                    let here = self.listener.local_addr().map_or([0; 4].into(), |own| own.ip());
                    self.refusals.count("that waited for lack of descriptors", here);
                    self.paused_until = Some(Instant::now() + PAUSE);
                    return;
                }
            }
        }
    }

    fn take(&mut self, stream: TcpStream, from: IpAddr) {
        if !is_allowed(self.allow, from) {
            return self.refusals.count("from addresses that are not allowed", from);
        }
        let counted = counted_as(from);
        let same = self.connections.iter().filter(|one| one.from == counted).count();
        if same >= MAX_PER_ADDRESS || !self.has_room() {
            return self.refusals.count("beyond the limit of connections", from);
        }
        // Without the second one answers would wait for one another.
        if stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_ok() {
            let (heard, unsent) = (Instant::now(), Vec::new());
            self.connections.push(Connection { stream, from: counted, heard, unsent });
        }
    }

    /// Makes room if there is none, and it can be made.
    fn has_room(&mut self) -> bool {
        if self.connections.len() < MAX {
            return true;
        }
        let connections = self.connections.iter().enumerate();
        let idlest = connections.min_by_key(|(_, one)| one.heard);
        match idlest {
            Some((at, one)) if one.heard.elapsed() >= IDLE_AFTER => {
                self.connections.swap_remove(at);
                true
            }
            _ => false,
        }
    }
}

impl Connection {
    fn awaits(&self) -> PollFlags {
        if self.unsent.is_empty() { PollFlags::IN } else { PollFlags::OUT }
    }

    /// Reads a piece and sends it back, or what is left of the last one.
    fn serve(&mut self) -> io::Result<()> {
        let mut piece = [0; PIECE];
        if !self.unsent.is_empty() {
            let sent = sent(&mut self.stream, &self.unsent)?;
            self.unsent.drain(..sent);
            return Ok(());
        }
        match self.stream.read(&mut piece) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.heard = Instant::now();
                let sent = sent(&mut self.stream, &piece[..read])?;
                self.unsent.extend_from_slice(&piece[sent..read]);
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// How many of these bytes the kernel has taken.
fn sent(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    match stream.write(bytes) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(0)
        }
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_have_their_turn_however_many_others_come() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let refusals = Refusals::new("test", |_| ());
        let (connections, paused_until) = (Vec::new(), None);
        let mut streams = Streams {
            listener: &listener,
            allow: &[],
            refusals: &refusals,
            connections,
            paused_until,
        };
        let connect = |_| TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let waiting: Vec<TcpStream> = (0..ACCEPTS + 1).map(connect).collect();
        streams.turn().unwrap();
        assert_eq!(streams.connections.len(), ACCEPTS);
        streams.turn().unwrap();
        assert_eq!(streams.connections.len(), waiting.len());
    }
}
