//! A port of the NIC joined with its host.

use std::io;

use base::time::Instant;
use nic::observer::Delivered;
use nic::port::{Port, PortSettings, RejectedFrame};
use nic::queue::Queue;

use crate::trace::Watch;
use crate::{Fetched, HostSide, Route, Service};

/// The host of `queue` is gone: what has completed is lost, its buffers in `pool`, and nothing more
/// is taken. How many packets that were.
pub fn discard(now: Instant, queue: &mut Queue<Vec<u8>>, pool: &mut Vec<Vec<u8>>) -> u64 {
    queue.set_size(0);
    queue.take_interrupt();
    match queue.backlog() {
        0 => 0,
        lost => queue.poll(now, lost, &mut (), |_, frame| pool.push(frame)) as u64,
    }
}

/// A port of the NIC, its host, and what is recorded of both.
///
/// In each round, its owner calls
///
/// 1. [`sync`](Self::sync): the host has polled, re-armed, changed a setting;
/// 2. [`transmit`](Self::transmit) until there is no frame: they go onto the wire;
/// 3. [`make_room`](Self::make_room), and [`receive`](Self::receive) for each frame off the wire;
/// 4. [`advance`](Self::advance): DMAs complete, timers run out;
/// 5. [`serve`](Self::serve): packets and interrupts reach the host.
///
/// The next round is due when a descriptor of the host can be read, at the
/// [`deadline`](Self::deadline), or when a frame comes. `now` never goes back.
#[derive(Debug)]
pub struct HostPort<H: HostSide + ?Sized = dyn HostSide> {
    /// The host's end.
    pub host: Box<H>,
    /// The NIC's end.
    pub port: Port<Vec<u8>>,
    /// Its holds and last events.
    pub watch: Watch,
}

impl<H: HostSide + ?Sized> HostPort<H> {
    /// An idle port for `host`.
    pub fn new(host: Box<H>, settings: PortSettings, now: Instant) -> Self {
        Self { host, port: Port::new(settings, now), watch: Watch::new() }
    }

    /// Takes note of what the host has done since the last round; `ready` if one of its descriptors
    /// can be read.
    pub fn sync(&mut self, now: Instant, ready: bool) {
        self.host.sync(now, ready, &mut self.port, &mut self.watch);
    }

    /// Takes the next frame that the host sent on `source` in place of what is in `frame`.
    pub fn transmit(
        &mut self,
        now: Instant,
        source: usize,
        frame: &mut Vec<u8>,
    ) -> io::Result<Fetched> {
        let fetched = self.host.transmit(now, source, frame)?;
        if fetched == Fetched::Frame {
            self.port.transmitted(now, &mut self.watch);
        }
        Ok(fetched)
    }

    /// Looks how many packets the host has room for, right before frames come off the wire.
    pub fn make_room(&mut self) {
        self.host.make_room(&mut self.port);
    }

    /// Takes a frame off the wire.
    pub fn receive(&mut self, now: Instant, frame: Vec<u8>) -> Result<(), RejectedFrame<Vec<u8>>> {
        match self.host.route(&frame) {
            Route::Port => self.port.receive(now, frame),
            Route::Queue(queue) => self.port.receive_on(now, frame, Some(queue)),
            Route::Nowhere => Err(RejectedFrame::Filtered(frame)),
        }
    }

    /// Lets DMAs complete and timers run out.
    pub fn advance(&mut self, now: Instant) {
        self.port.advance(now, &mut self.watch);
    }

    /// Lets the host have its packets and interrupts. `delivered` is called for each packet that
    /// the host takes; its buffer goes into `pool`.
    pub fn serve(
        &mut self,
        now: Instant,
        pool: &mut Vec<Vec<u8>>,
        delivered: &mut dyn FnMut(&Delivered, &[u8]),
    ) -> io::Result<()> {
        let Self { host, port, watch } = self;
        host.serve(now, &mut Service { port, watch, pool, delivered })
    }

    /// When the next round is due at the latest; it may have passed.
    pub fn deadline(&self) -> Option<Instant> {
        [self.port.deadline(), self.host.deadline()].into_iter().flatten().min()
    }
}
