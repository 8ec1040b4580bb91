//! Waiting for several descriptors, each with a name of its own for what it is.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// What one round of a loop waits for.
pub(super) struct Waiter<'a, T> {
    descriptors: Vec<PollFd<'a>>,
    names: Vec<T>,
}

impl<'a, T: Copy> Waiter<'a, T> {
    pub(super) fn new() -> Self {
        Self { descriptors: Vec::new(), names: Vec::new() }
    }

    /// Waits until it can be read, or has ended.
    pub(super) fn readable(&mut self, descriptor: BorrowedFd<'a>, name: T) {
        self.add(descriptor, PollFlags::IN, name);
    }

    /// Waits until it can be written to, or has ended.
    pub(super) fn writable(&mut self, descriptor: BorrowedFd<'a>, name: T) {
        self.add(descriptor, PollFlags::OUT, name);
    }

    fn add(&mut self, descriptor: BorrowedFd<'a>, flags: PollFlags, name: T) {
        self.descriptors.push(PollFd::from_borrowed_fd(descriptor, flags));
        self.names.push(name);
    }

    /// The names of those for which the wait is over; none if time or a signal has ended it.
    pub(super) fn wait(mut self, timeout: Option<Duration>) -> io::Result<Vec<T>> {
        let timeout = timeout.map(|timeout| {
            Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
        });
        match poll(&mut self.descriptors, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let pairs = self.descriptors.iter().zip(self.names);
        Ok(pairs.filter(|(fd, _)| !fd.revents().is_empty()).map(|(_, name)| name).collect())
    }
}
