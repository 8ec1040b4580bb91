//! How a data-plane thread waits for the next frame or the next deadline.
//!
//! A sleeping thread costs nothing and wakes late: the kernel's timer fires on time (with a timer
//! slack of 1 ns), but a core that has gone idle, a virtual one above all, needs tens of
//! microseconds to come back. A spinning thread is on time and costs a core. In between, a thread
//! may sleep and spin only for the last stretch before a deadline. Which one, and by how much
//! deadlines were overshot, is reported with every result: a hold of 75 us that lasts 120 us is the
//! machine's doing, not the strategy's.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use base::time::{Duration, Instant};
use base::times::Times;
pub use base::waiting::Waiting;
use rustix::event::epoll;

use sys::clock;

/// How long before a deadline a thread that waits precisely stops sleeping: longer than an idle
/// core takes to wake.
const LAST_STRETCH: Duration = Duration::from_micros(150);

/// The longest overshoot that is distinguished, in nanoseconds.
const MAX_OVERSHOOT_NS: u64 = 1_000_000_000;

/// Waits for file descriptors and deadlines, and records by how much it was late.
pub(crate) struct Waiter {
    epoll: OwnedFd,
    waiting: Waiting,
    overshoot: Times,
    spun: Duration,
    ready: Vec<epoll::Event>,
}

impl Waiter {
    /// A waiter for the calling thread, whose timer slack becomes 1 ns.
    pub(crate) fn new(waiting: Waiting) -> rustix::io::Result<Self> {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            waiting,
            overshoot: Times::up_to(MAX_OVERSHOOT_NS),
            spun: Duration::ZERO,
            ready: Vec::with_capacity(64),
        })
    }

    /// Adds `fd`; [`wait`](Self::wait) reports it as `token` while it can be read.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: u64) -> rustix::io::Result<()> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)
    }

    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
        epoll::delete(&self.epoll, fd)
    }

    /// Waits until a descriptor can be read or `deadline` is there; `tokens` becomes those that can
    /// be read.
    pub(crate) fn wait(
        &mut self,
        deadline: Option<Instant>,
        tokens: &mut Vec<u64>,
    ) -> rustix::io::Result<()> {
        self.ready.clear();
        loop {
            let before = clock::now();
            let timeout = self.timeout(before, deadline);
            epoll::wait(
                self.epoll.as_fd(),
                rustix::buffer::spare_capacity(&mut self.ready),
                timeout.map(clock::timespec).as_ref(),
            )?;
            let now = clock::now();
            if timeout == Some(Duration::ZERO) && deadline.is_none_or(|deadline| before < deadline)
            {
                self.spun = self.spun + now.since(before);
            }
            if !self.ready.is_empty() {
                break;
            }
            if let Some(deadline) = deadline.filter(|deadline| *deadline <= now) {
                // Only what was waited for counts: a deadline that had passed on entry was missed
                // by work, not by waking.
                if before < deadline {
                    self.overshoot.record(now.since(deadline).as_nanos().max(1));
                }
                break;
            }
        }
        tokens.clear();
        tokens.extend(self.ready.iter().map(|event| event.data.u64()));
        Ok(())
    }

    /// Looks, without waiting, which descriptors can be read: for an owner who never waits.
    pub(crate) fn look(&mut self, tokens: &mut Vec<u64>) -> rustix::io::Result<()> {
        self.ready.clear();
        let room = rustix::buffer::spare_capacity(&mut self.ready);
        epoll::wait(self.epoll.as_fd(), room, Some(&clock::timespec(Duration::ZERO)))?;
        tokens.extend(self.ready.iter().map(|event| event.data.u64()));
        Ok(())
    }

    pub(crate) fn spins(&self) -> bool {
        self.waiting == Waiting::Spin
    }

    /// Counts `span` as one in which the owner waited without sleeping.
    pub(crate) fn add_spun(&mut self, span: Duration) {
        self.spun = self.spun + span;
    }

    fn timeout(&self, now: Instant, deadline: Option<Instant>) -> Option<Duration> {
        let left = deadline.map(|deadline| deadline.since(now));
        match self.waiting {
            Waiting::Sleep => left,
            Waiting::Precise => left.map(|left| left - LAST_STRETCH),
            Waiting::Spin => Some(Duration::ZERO),
        }
    }

    pub(crate) fn spun(&self) -> Duration {
        self.spun
    }

    /// By how many nanoseconds deadlines were overshot so far.
    pub(crate) fn overshoot(&self) -> &Times {
        &self.overshoot
    }
}
