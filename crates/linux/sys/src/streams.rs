//! Streams to hosts that may be slow on purpose: one deadline for all bytes, not for each piece.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// Whether `error`, of accepting a connection, says that something is lacking for it, such as
/// descriptors. It waits on, and a listener that is polled stays ready: pause, and try again.
pub fn is_lack(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    !matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

/// Reads until `buffer` is full or the stream ends: how many bytes came.
///
/// # Errors
/// Those of receiving, and [`ErrorKind::TimedOut`] if `until` comes first, however many bytes came.
pub fn read_full(
    stream: impl AsFd,
    buffer: &mut [u8],
    until: Option<Instant>,
) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        let left = until.map(time_left).transpose()?;
        set_socket_timeout(&stream, Timeout::Recv, left)?;
        match recv(&stream, &mut buffer[filled..], RecvFlags::empty()) {
            Ok((_, 0)) => break,
            Ok((_, read)) => filled += read,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(filled)
}

/// Reads a line with its end, or up to the end of the stream; byte by byte, so that nothing behind
/// it is lost.
///
/// # Errors
/// Those of [`read_full`], and [`ErrorKind::InvalidData`] if it has more than `longest` bytes.
pub fn read_line(stream: impl AsFd, longest: usize, until: Instant) -> io::Result<Vec<u8>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.last() != Some(&b'\n') && read_full(&stream, &mut byte, Some(until))? > 0 {
        if line.len() == longest {
            return Err(io::Error::new(ErrorKind::InvalidData, "the line is too long"));
        }
        line.push(byte[0]);
    }
    Ok(line)
}

/// Writes all of `bytes`.
///
/// # Errors
/// Those of sending, and [`ErrorKind::TimedOut`] if `until` comes first, however many bytes went.
pub fn write_full(stream: impl AsFd, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        set_socket_timeout(&stream, Timeout::Send, Some(time_left(until)?))?;
        match send(&stream, bytes, SendFlags::NOSIGNAL) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What is left until a deadline.
///
/// # Errors
/// [`ErrorKind::TimedOut`] if it has passed.
pub fn time_left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::Error::new(ErrorKind::TimedOut, "it took too long"));
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (here, listener.accept().unwrap().0)
    }

    fn after(millis: u64) -> Instant {
        Instant::now() + Duration::from_millis(millis)
    }

    #[test]
    fn a_drip_of_bytes_moves_no_deadline() {
        let (here, mut there) = pair();
        let drip = thread::spawn(move || {
            while there.write_all(b".").is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
        });
        let mut buffer = vec![0; 1 << 30];
        let late = read_full(&here, &mut buffer, Some(after(50))).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        drop(here);
        drip.join().unwrap();
    }

    #[test]
    fn a_reader_that_sips_moves_no_deadline() {
        let (here, mut there) = pair();
        let sip = thread::spawn(move || {
            while there.read(&mut [0; 1_024]).is_ok_and(|it| it > 0) {
                thread::sleep(Duration::from_millis(1));
            }
        });
        let late = write_full(&here, &vec![0; 1 << 30], after(50)).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        // What it has not read is not worth reading.
        here.shutdown(std::net::Shutdown::Both).unwrap();
        drop(here);
        drop(sip);
    }

    #[test]
    fn a_line_ends_by_itself_by_its_length_or_by_the_deadline() {
        let (here, mut there) = pair();
        there.write_all(b"one\ntwo").unwrap();
        assert_eq!(read_line(&here, 4, after(60_000)).unwrap(), b"one\n");
        let late = read_line(&here, 4, after(20)).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        there.write_all(b"three").unwrap();
        let long = read_line(&here, 4, after(60_000)).unwrap_err();
        assert_eq!(long.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn what_comes_in_pieces_is_whole_and_an_end_is_no_error() {
        let (here, mut there) = pair();
        there.write_all(b"abc").unwrap();
        write_full(&there, b"de", after(60_000)).unwrap();
        let mut buffer = [0; 4];
        assert_eq!(read_full(&here, &mut buffer, None).unwrap(), 4);
        assert_eq!(&buffer, b"abcd");
        drop(there);
        assert_eq!(read_full(&here, &mut buffer, Some(after(60_000))).unwrap(), 1);
        assert_eq!(read_full(&here, &mut buffer, Some(after(60_000))).unwrap(), 0);
    }
}
