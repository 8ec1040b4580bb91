//! The socket of requests of our own.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Instant;

use anyhow::{Context, Result};
use sys::streams::time_left;

use super::Manner;
use crate::answer::{TIMEOUT, read_answer};
use probe::echo;

/// The most datagrams that may come before an answer and are none.
const STRANGE: usize = 100;

pub(super) const NOT_AN_ECHO: &str = "it sends something else than it was sent; it is no echo";

/// A connection to an echo, or a socket that sends it datagrams.
pub(super) enum EchoSocket {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl EchoSocket {
    /// Reaches the echo.
    pub(super) fn open(manner: &Manner) -> Result<Self> {
        let Manner { to, udp, .. } = *manner;
        let name = if udp { "UDP" } else { "TCP" };
        let socket = || -> io::Result<Self> {
            if udp {
                let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                socket.connect(to)?;
                socket.set_read_timeout(Some(TIMEOUT))?;
                return Ok(Self::Udp(socket));
            }
            let stream = TcpStream::connect_timeout(&to, TIMEOUT)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            Ok(Self::Tcp(stream))
        };
        socket().with_context(|| {
            format!("reach a {name} echo at {to}; start one there, or name another with --port")
        })
    }

    /// The address of this host on it.
    pub(super) fn local(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr(),
            Self::Udp(socket) => socket.local_addr(),
        }
    }

    /// Sends a request.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Udp(socket) => socket.send(bytes).map(drop),
        }
    }

    /// Receives the answer to the request that `bytes` are.
    pub(super) fn receive(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let (asked, until) = (bytes.to_vec(), Instant::now() + TIMEOUT);
        match self {
            Self::Tcp(stream) => {
                read_answer(until, bytes, |rest| stream.read(rest))?;
                if bytes != asked {
                    return Err(io::Error::new(ErrorKind::InvalidData, NOT_AN_ECHO));
                }
                Ok(())
            }
            Self::Udp(socket) => {
                // One that comes too late is not the answer to this request.
                for _ in 0..STRANGE {
                    let length = socket.recv(bytes)?;
                    if echo::belong_together(&bytes[..length], &asked) {
                        return Ok(());
                    }
                    time_left(until)?;
                }
                Err(io::Error::new(ErrorKind::InvalidData, NOT_AN_ECHO))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_are_no_answers_are_passed_over_but_not_without_end() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let manner =
            Manner { to: far.local_addr().unwrap(), udp: true, size: 64, rate: 1_000.0, nanos: 1 };
        let mut socket = EchoSocket::open(&manner).unwrap();
        let mut hear = |strange: usize| {
            socket.send(&[b'?'; 64]).unwrap();
            let (_, here) = far.recv_from(&mut [0; 64]).unwrap();
            (0..strange).for_each(|_| assert!(far.send_to(b"strange", here).is_ok()));
            far.send_to(&[b'?'; 64], here).unwrap();
            socket.receive(&mut [b'?'; 64])
        };
        hear(STRANGE - 1).unwrap();
        assert_eq!(hear(STRANGE).unwrap_err().to_string(), NOT_AN_ECHO);
    }
}
