//! The interface of a host to the data plane.

use std::io;
use std::os::fd::BorrowedFd;

use base::time::{Duration, Instant};
use nic::observer::Delivered;
use nic::port::Port;

use crate::processor::Busy;
use crate::trace::Watch;

/// What came of looking for a frame that a host has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// A frame was fetched.
    Frame,
    /// One that no port takes; it is counted, and there may be others behind it.
    Dropped,
    /// There is one, and it leaves at this time, which is later than now.
    Later(Instant),
    /// There is none.
    Nothing,
}

/// Where a frame off the wire goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To the queue that the port chooses.
    Port,
    /// To this queue.
    Queue(u16),
    /// To none: the driver has not asked for it.
    Nowhere,
}

/// How a guest stands to a port that it may connect to, and leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// A guest is connected.
    pub connected: bool,
    /// Why the last guest is gone, if none has come since.
    pub lost: Option<String>,
    /// Pairs of queues that the guest uses.
    pub pairs_used: u16,
    /// Pairs of queues that it could use.
    pub pairs: u16,
    /// Frames of the guest that were longer than any port takes.
    pub too_long: u64,
}

/// The host's end of a port. Calls come from one thread, and `now` never goes back.
/// [`HostPort`](crate::HostPort) makes them in their order.
pub trait HostSide: Send {
    /// What becomes readable when the host has sent something or wants something. A host has
    /// *sources*: one descriptor for each, numbered from 0.
    fn fds(&self) -> Vec<BorrowedFd<'_>>;

    /// Takes note of what the host has done since: messages, settings, polls, re-arms. Called at
    /// the start of every round; `ready` if one of its descriptors can be read.
    fn sync(&mut self, now: Instant, ready: bool, port: &mut Port<Vec<u8>>, watch: &mut Watch) {
        let _ = (now, ready, port, watch);
    }

    /// Looks how many packets the host has room for now. Called right before frames arrive: what
    /// made others send them may have made room here.
    fn make_room(&mut self, port: &mut Port<Vec<u8>>) {
        let _ = port;
    }

    /// Where a frame off the wire goes, as the host's driver has configured its device, which may
    /// count what it refuses.
    fn route(&mut self, frame: &[u8]) -> Route {
        let _ = frame;
        Route::Port
    }

    /// Takes the next frame that the host sent on `source` in place of what is in `frame`.
    fn transmit(&mut self, now: Instant, source: usize, frame: &mut Vec<u8>)
    -> io::Result<Fetched>;

    /// Whether looking for a frame costs next to nothing, so that every round may. Always the same.
    fn is_in_memory(&self) -> bool {
        false
    }

    /// Lets the host have what the NIC has for it: completed packets, interrupts.
    fn serve(&mut self, now: Instant, service: &mut Service<'_>) -> io::Result<()>;

    /// When it has to be served next, whatever the port's own deadline; a moment that has passed
    /// means at once.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The host as one in virtual time, if it is.
    fn virtual_time(&mut self) -> Option<&mut dyn VirtualHost> {
        None
    }

    /// The least time between two interrupts of a receive queue that the host's driver has asked
    /// for by registers of the device. `None` if it has none, so that the setting `driver` means
    /// nothing.
    fn interval(&self, queue: usize) -> Option<Duration> {
        let _ = queue;
        None
    }

    /// Plugs the host's cable in, or pulls it out; `false` if its NIC cannot tell its driver.
    fn set_link(&mut self, up: bool) -> bool {
        let _ = up;
        false
    }

    /// Disconnects the frontend that has the port; `false` if none has.
    fn evict(&mut self) -> bool {
        false
    }

    /// Frames that the host's stack refused to take.
    fn refused(&self) -> u64 {
        0
    }

    /// CPU time that the calling thread has spent in the host's receive path, which is not the
    /// NIC's.
    fn receive_time(&self) -> Duration {
        Duration::ZERO
    }

    /// What its processor has been busy with up to `now`, if that costs time.
    fn busy(&self, now: Instant) -> Option<Busy> {
        let _ = now;
        None
    }

    /// How its guest stands, if it is a port that guests connect to.
    fn attachment(&self) -> Option<Attachment> {
        None
    }
}

/// A host in virtual time. Kicks are messages with answers, and interrupts reach a host at the
/// beginning of its turn, so that each happens at a moment, and host and NIC never act at once.
pub trait VirtualHost {
    /// When an interrupt is due next.
    fn next_irq_at(&self) -> Option<Instant>;

    /// Takes the interrupts that are due; whether the host is to have a turn because of them.
    fn raise_irqs(&mut self, now: Instant) -> bool;

    /// Sends the interrupts that were raised. The host must not be running, and gets its turn next:
    /// no caller waits until it has taken them.
    fn send_irqs(&mut self);

    /// The interrupts that were raised, a bit for each ring, for a host that finds them in memory
    /// instead.
    fn take_irqs(&mut self) -> u64;

    /// Answers a kick, once everything was done that it asked for. Until then the host stands
    /// still.
    fn answer_kick(&mut self);
}

/// What serving a host takes.
pub struct Service<'a> {
    /// The NIC's end.
    pub port: &'a mut Port<Vec<u8>>,
    /// What records the events of the port.
    pub watch: &'a mut Watch,
    /// Buffers to use again.
    pub pool: &'a mut Vec<Vec<u8>>,
    /// Called for each packet that the host receives, with its frame.
    pub delivered: &'a mut dyn FnMut(&Delivered, &[u8]),
}
