//! Waiting: one epoll object, or an io_uring, with timeouts in nanoseconds.
//!
//! `epoll_pwait2` takes nanoseconds; the older call takes milliseconds and rustix uses that one
//! unless its feature `linux_5_11` is on. The thread's timer slack is set to 1 ns beside it,
//! otherwise the kernel adds up to 50 us to every timeout.

use base::time::Duration;
use bench::polling::Polling;
use model::napi::BusyPolling;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use std::cell::RefCell;
use std::io;
use sys::busy_poll::{self, BusyPoll};
use sys::ring::{IoRing, RingEvent};

const EVENTS_MAX: usize = 64;

/// Packets of one poll: as many as the kernel's own polls take.
const BUDGET: u16 = 64;

#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) token: u64,
    /// It takes bytes again.
    pub(super) writable: bool,
    /// It has bytes, or an end, or an error.
    pub(super) readable: bool,
}

pub(super) struct Poller {
    waits: Waits,
    /// How reads of its sockets poll, if they do.
    of_socket: Option<BusyPoll>,
}

/// The object of the kernel that programs wait with.
enum Waits {
    Epoll(OwnedFd),
    Ring(Box<RefCell<IoRing>>),
}

/// What one wait reported. Kept apart from the poller so that sockets can be added while it is
/// read.
pub(super) struct Events {
    of_epoll: Vec<Event>,
    of_ring: Vec<RingEvent>,
}

impl Events {
    pub(super) fn new() -> Self {
        Self { of_epoll: Vec::with_capacity(EVENTS_MAX), of_ring: Vec::new() }
    }

    pub(super) fn get(&self, index: usize) -> Option<Ready> {
        if let Some(&RingEvent { token, readable, writable }) = self.of_ring.get(index) {
            return Some(Ready { token, writable, readable });
        }
        let event = *self.of_epoll.get(index)?;
        let (flags, data) = (event.flags, event.data);
        let ends = EventFlags::IN | EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP;
        Some(Ready {
            token: data.u64(),
            writable: flags.contains(EventFlags::OUT),
            readable: flags.intersects(ends),
        })
    }
}

fn kernel_terms(polling: BusyPolling) -> BusyPoll {
    let BusyPolling { lasts, prefer } = polling;
    BusyPoll { usecs: lasts.as_micros() as u32, budget: BUDGET, prefer }
}

impl Poller {
    pub(super) fn new(polling: Polling) -> Result<Self, String> {
        if let Some(poll) = polling.of_ring().map(kernel_terms) {
            let ring = IoRing::new().and_then(|ring| ring.poll_napi(poll).map(|()| ring));
            let ring = ring.map_err(|error| {
                format!(
                    "wait with an io_uring that polls ({polling}): {error}; this takes Linux 6.9"
                )
            })?;
            return Ok(Self { waits: Waits::Ring(Box::new(RefCell::new(ring))), of_socket: None });
        }
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(|error| format!("create an epoll object: {error}"))?;
        if let Some(poll) = polling.of_epoll().map(kernel_terms) {
            busy_poll::set_epoll(&epoll, poll).map_err(|error| {
                format!("have epoll_wait poll ({polling}): {error}; this takes Linux 6.9 or newer")
            })?;
        }
        Ok(Self { waits: Waits::Epoll(epoll), of_socket: polling.of_socket().map(kernel_terms) })
    }

    /// Reports this socket under `token` when it can be read.
    pub(super) fn add_socket(&self, socket: impl AsFd, token: u64) -> io::Result<()> {
        if let Some(poll) = self.of_socket {
            busy_poll::set_socket(&socket, poll)?;
        }
        self.add(socket, token)
    }

    /// Reports this descriptor under `token` when it can be read.
    pub(super) fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        match &self.waits {
            Waits::Ring(ring) => ring.borrow_mut().add(fd, token),
            Waits::Epoll(epoll) => {
                epoll::add(epoll, fd, EventData::new_u64(token), EventFlags::IN)?;
            }
        }
        Ok(())
    }

    /// Also reports, or no longer reports, when it can be written.
    pub(super) fn want_write(&self, fd: impl AsFd, token: u64, write: bool) -> io::Result<()> {
        let flags = if write { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        match &self.waits {
            Waits::Ring(ring) => ring.borrow_mut().want_write(token, write),
            Waits::Epoll(epoll) => epoll::modify(epoll, fd, EventData::new_u64(token), flags)?,
        }
        Ok(())
    }

    /// Waits until something is ready or the timeout is over; `None` waits forever.
    pub(super) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.of_ring.clear();
        events.of_epoll.clear();
        let epoll = match &self.waits {
            Waits::Epoll(epoll) => epoll,
            Waits::Ring(ring) => {
                let timeout = timeout.map(|it| std::time::Duration::from_nanos(it.as_nanos()));
                return ring.borrow_mut().wait(timeout, &mut events.of_ring);
            }
        };
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: (timeout.as_nanos() / 1_000_000_000) as i64,
            tv_nsec: (timeout.as_nanos() % 1_000_000_000) as i64,
        });
        match epoll::wait(epoll, spare_capacity(&mut events.of_epoll), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
