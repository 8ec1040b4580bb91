//! Waiting for sockets with io_uring, and having it poll their NICs meanwhile
//! (`IORING_REGISTER_NAPI`, Linux 6.9).
//!
//! The ring has a one-shot poll request for each socket, and makes a new one after each event: what
//! a program has not read yet is reported again, as by a level-triggered epoll object. The kernel
//! finds the NAPI instance of a socket when the request ends, so it polls from the second on.
//!
//! A socket stays open until its request has ended, so one that is closed is reset only then.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use io_uring::types::{Fd, Napi, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};

use crate::busy_poll::BusyPoll;

/// Requests that are made at once.
const ENTRIES: u32 = 1_024;

/// Marks the requests that wait for room to write.
const WRITES: u64 = 1 << 63;

/// A ring, and what it waits for.
pub struct IoRing {
    ring: IoUring,
    watched: Vec<Watched>,
}

struct Watched {
    fd: RawFd,
    token: u64,
    wants_write: bool,
    /// Requests to read and to write that are under way.
    under_way: [bool; 2],
    /// Its other end has closed, or it is in error: no more is asked of it.
    has_ended: bool,
}

/// What a descriptor is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingEvent {
    /// The token of the descriptor.
    pub token: u64,
    /// It has bytes, or an end, or an error.
    pub readable: bool,
    /// It takes bytes again.
    pub writable: bool,
}

impl IoRing {
    /// A ring that waits for nothing yet.
    ///
    /// # Errors
    /// If the kernel has no io_uring, or does not let this user have one.
    pub fn new() -> io::Result<Self> {
        Ok(Self { ring: IoUring::new(ENTRIES)?, watched: Vec::new() })
    }

    /// Has waits poll the NAPI instances by which packets came. The budget is the kernel's own, 8.
    ///
    /// # Errors
    /// `EINVAL` before Linux 6.9.
    pub fn poll_napi(&self, poll: BusyPoll) -> io::Result<()> {
        let napi = Napi::new().set_busy_poll_timeout(poll.usecs).set_prefer_busy_poll(poll.prefer);
        self.ring.submitter().register_napi(&mut { napi })
    }

    /// Reports a descriptor under `token` when it can be read.
    pub fn add(&mut self, fd: impl AsFd, token: u64) {
        let fd = fd.as_fd().as_raw_fd();
        let under_way = [false; 2];
        self.watched.push(Watched { fd, token, wants_write: false, under_way, has_ended: false });
    }

    /// Also reports, or no longer reports, when it can be written.
    pub fn want_write(&mut self, token: u64, wants_write: bool) {
        let last = self.watched.iter_mut().rfind(|it| it.token == token);
        last.into_iter().for_each(|it| it.wants_write = wants_write);
    }

    /// Waits until something is ready or the timeout is over; `None` waits forever. A signal ends
    /// it, too.
    ///
    /// # Errors
    /// If the kernel refuses a request.
    pub fn wait(
        &mut self,
        timeout: Option<Duration>,
        ready: &mut Vec<RingEvent>,
    ) -> io::Result<()> {
        self.ask()?;
        let timeout = timeout.map(Timespec::from);
        let args = SubmitArgs::new();
        let args = timeout.as_ref().map_or(args, |timeout| args.timespec(timeout));
        match self.ring.submitter().submit_with_args(1, &args) {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {
                return Err(error);
            }
            _ => {}
        }
        self.collect(ready);
        Ok(())
    }

    /// Makes the requests that are missing.
    fn ask(&mut self) -> io::Result<()> {
        for number in 0..self.watched.len() {
            let Watched { fd, wants_write, under_way, has_ended, .. } = self.watched[number];
            let asks = [
                (0, !has_ended && !under_way[0], libc::POLLIN | libc::POLLRDHUP),
                (1, !has_ended && wants_write && !under_way[1], libc::POLLOUT),
            ];
            for (kind, _, flags) in asks.into_iter().filter(|(_, asks, _)| *asks) {
                let mark = if kind == 1 { WRITES } else { 0 };
                let request = opcode::PollAdd::new(Fd(fd), flags as u32).build();
                let request = request.user_data(number as u64 | mark);
                // SAFETY: a request to poll has no memory of ours but the entry, which is copied;
                // a descriptor that is closed meanwhile is an error of the request.
                while unsafe { self.ring.submission().push(&request) }.is_err() {
                    self.ring.submit()?;
                }
                self.watched[number].under_way[kind] = true;
            }
        }
        Ok(())
    }

    fn collect(&mut self, ready: &mut Vec<RingEvent>) {
        const ENDS: i16 = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
        for completion in self.ring.completion() {
            let writes = completion.user_data() & WRITES != 0;
            let number = (completion.user_data() & !WRITES) as usize;
            let Some(watched) = self.watched.get_mut(number) else { continue };
            watched.under_way[usize::from(writes)] = false;
            // A request that failed is of a descriptor that was closed.
            let events = i16::try_from(completion.result()).unwrap_or(libc::POLLNVAL);
            let is_gone = completion.result() < 0;
            watched.has_ended |= is_gone || events & ENDS != 0;
            if is_gone || writes && !watched.wants_write {
                continue;
            }
            let writable = writes && events & libc::POLLOUT != 0;
            let readable = events & (libc::POLLIN | ENDS) != 0;
            ready.push(RingEvent { token: watched.token, readable, writable });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_is_not_read_is_reported_again() {
        let mut ring = match IoRing::new() {
            Ok(ring) => ring,
            Err(error) => return eprintln!("skipped: no io_uring for this user here: {error}"),
        };
        let (mut near, mut far) = UnixStream::pair().unwrap();
        ring.add(&near, 7);
        let wait = |ring: &mut IoRing| {
            let mut ready = Vec::new();
            ring.wait(Some(Duration::from_millis(20)), &mut ready).unwrap();
            ready
        };
        assert_eq!(wait(&mut ring), []);
        far.write_all(b"two").unwrap();
        let read = RingEvent { token: 7, readable: true, writable: false };
        assert_eq!(wait(&mut ring), [read]);
        assert_eq!(wait(&mut ring), [read], "it was not read");
        near.read_exact(&mut [0; 3]).unwrap();
        // The request that was under way had seen it.
        wait(&mut ring);
        assert_eq!(wait(&mut ring), []);
        ring.want_write(7, true);
        let write = RingEvent { token: 7, readable: false, writable: true };
        assert_eq!(wait(&mut ring), [write]);
        ring.want_write(7, false);
        wait(&mut ring);
        drop(far);
        assert_eq!(wait(&mut ring), [read], "its end is something to read");
        assert_eq!(wait(&mut ring), [], "and is reported once");
    }
}
