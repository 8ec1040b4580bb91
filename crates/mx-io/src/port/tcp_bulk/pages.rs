//! Sending memory of a message without copying it: its pages go through a pipe to the socket.
//!
//! `vmsplice(2)` puts references to the pages into a pipe, and `splice(2)` moves them on to a
//! socket, which sends them from where they are (`MSG_SPLICE_PAGES` in the kernel). So what leaves
//! is what is in the memory at that time, or, on a veth or the loopback, at the time at which the
//! receiver reads it. A message stays as it is until its receiver has reported that it has all of
//! it, so that is the same. A connection whose peer is lost is closed before messages end that have
//! something on it, and a receiver reads no more from a connection that was broken off.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use rustix::io::{Errno, read};
use rustix::pipe::{
    IoSliceRaw, PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice, vmsplice,
};

/// Bytes that the pipe holds if it may: those of a run, wherever it begins in a page.
const ROOM: usize = 512 << 10;

/// A pipe, which is empty between calls.
#[derive(Default)]
pub(super) struct Pages {
    pipe: Option<Pipe>,
}

struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pages {
    /// Sends data; others follow soon if there are `more`. Returns how many bytes it has dealt
    /// with: the socket has them, or, if there was no room, `rest`. None if this host does not do
    /// that.
    pub(super) fn send(
        &mut self,
        stream: &TcpStream,
        data: &[u8],
        more: bool,
        rest: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let Some(pipe) = self.pipe() else { return Ok(0) };
        let mut done = 0;
        while done < data.len() && rest.is_empty() {
            // The pipe is empty, so an error means that pages like these cannot be had.
            let Ok(held @ 1..) = pipe.fill(&data[done..]) else { break };
            done += held;
            pipe.drain(stream, held, more || done < data.len(), rest)?;
        }
        Ok(done)
    }

    fn pipe(&mut self) -> Option<&Pipe> {
        if self.pipe.is_none() {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
            // With less room it takes more calls.
            let _ = fcntl_setpipe_size(&writer, ROOM);
            self.pipe = Some(Pipe { reader, writer });
        }
        self.pipe.as_ref()
    }
}

impl Pipe {
    /// Puts pages into the pipe; how many of the bytes it holds.
    fn fill(&self, data: &[u8]) -> rustix::io::Result<usize> {
        let slices = [IoSliceRaw::from_slice(data)];
        // SAFETY: the pages are only read from, and belong to a message that does not change until
        // its receiver has all of it, as `Source` demands.
        // JUSTIFICATION: the kernel copies what it is told to send in any other way.
        unsafe { vmsplice(&self.writer, &slices, SpliceFlags::NONBLOCK) }
    }

    /// Moves what the pipe holds to a socket, and what that does not take to `rest`.
    fn drain(
        &self,
        stream: &TcpStream,
        mut held: usize,
        more: bool,
        rest: &mut Vec<u8>,
    ) -> io::Result<()> {
        let flags = if more { SpliceFlags::MORE } else { SpliceFlags::empty() };
        while held > 0 {
            let flags = flags | SpliceFlags::NONBLOCK;
            match splice(&self.reader, None, stream, None, held, flags) {
                Ok(count @ 1..) => held -= count,
                Err(Errno::INTR) => {}
                // No room; or an error, which shows again when the rest is sent.
                Ok(0) | Err(_) => break,
            }
        }
        self.empty(held, rest)
    }

    /// Reads the bytes that the pipe holds.
    fn empty(&self, held: usize, rest: &mut Vec<u8>) -> io::Result<()> {
        let mut at = rest.len();
        rest.resize(at + held, 0);
        while at < rest.len() {
            match read(&self.reader, &mut rest[at..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => at += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}
