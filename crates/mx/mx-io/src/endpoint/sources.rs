//! The descriptors that a thread sleeps on: those of the port, and a bell.

use std::os::fd::{AsFd, OwnedFd};

use base::time::Instant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::event_fd::EventFd;
use crate::port::{MORE_READINESS, Port};
use sys::clock;

/// Who sleeps on the port: the leader of the application's threads, or the progress thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Leader,
    Progress,
}

/// Descriptors of their own, so that a thread can sleep on them without the lock of the endpoint.
pub(super) struct Sources {
    readiness: OwnedFd,
    more: Vec<OwnedFd>,
    /// What other threads ring for each [`Role`]. The thread that sees its bell
    /// silences it, so two must not share one.
    bells: [EventFd; 2],
}

impl Sources {
    pub(super) fn of(port: &dyn Port) -> rustix::io::Result<Self> {
        let own = |fd: std::os::fd::BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(fd, 0);
        Ok(Self {
            readiness: own(port.readiness())?,
            more: port.more_readiness().into_iter().map(own).collect::<Result<_, _>>()?,
            bells: [EventFd::open()?, EventFd::open()?],
        })
    }

    /// Wakes the thread that has this role, or will the next time it wants to sleep.
    pub(super) fn ring(&self, role: Role) {
        self.bells[role as usize].ring();
    }

    /// Sleeps until the port has something, the bell rings, or it is `due`; with `writable` also
    /// until the port has room.
    pub(super) fn wait(
        &self,
        role: Role,
        due: Option<Instant>,
        writable: bool,
    ) -> rustix::io::Result<()> {
        let timeout = due.map(|due| clock::timespec(due.since(clock::now())));
        let wanted = if writable { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let bell = self.bells[role as usize].as_fd();
        let mut fds: [PollFd<'_>; 2 + MORE_READINESS] =
            std::array::from_fn(|_| PollFd::from_borrowed_fd(bell, PollFlags::IN));
        fds[0] = PollFd::from_borrowed_fd(self.readiness.as_fd(), wanted);
        for (slot, more) in fds[2..].iter_mut().zip(&self.more) {
            *slot = PollFd::from_borrowed_fd(more.as_fd(), PollFlags::IN);
        }
        let count = (2 + self.more.len()).min(fds.len());
        match poll(&mut fds[..count], timeout.as_ref()) {
            // A signal is a reason to look.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        if fds[1].revents().contains(PollFlags::IN) {
            self.bells[role as usize].silence();
        }
        Ok(())
    }

    /// Sleeps until the bell rings or it is `due`, whatever the port has.
    pub(super) fn wait_for_bell(&self, role: Role, due: Option<Instant>) -> rustix::io::Result<()> {
        let timeout = due.map(|due| clock::timespec(due.since(clock::now())));
        let mut fds = [PollFd::new(&self.bells[role as usize], PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => Ok(()),
            Ok(_) => {
                self.bells[role as usize].silence();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
