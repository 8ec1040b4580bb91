//! A descriptor that signals completions, for a program that polls other descriptors too.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{read, write};

use super::error::MxError;
use sys::clock;

/// A descriptor that can be read from once it was rung.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// One that is silent.
    ///
    /// # Errors
    /// If the process may not have another descriptor.
    pub fn new() -> Result<Self, MxError> {
        Self::open().map_err(|error| MxError::System(error.into()))
    }

    pub(crate) fn open() -> rustix::io::Result<Self> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self)
    }

    /// The descriptor, to poll.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Wakes the thread that waits for it, or will.
    pub fn ring(&self) {
        // It can only fail because it rings already.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    /// From now on it has to be rung again.
    pub fn silence(&self) {
        // It can only fail because it is silent.
        let _ = read(&self.0, &mut [0; 8]);
    }

    /// Sleeps until it rings, a signal comes, or the time is over; without one, for as long as that
    /// takes.
    pub fn wait(&self, timeout: Option<Duration>) {
        let timeout = timeout.map(|timeout| clock::timespec(clock::span(timeout)));
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        // A signal is a reason to look, and so would be anything else.
        let _ = poll(&mut fds, timeout.as_ref());
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
