//! The ports of a NIC and what joins them: a cable between two, a switch between more.
//!
//! ```text
//!   host a            links and switch                             host b
//!   a0 sends ──▶ link out of a ──▶ port b0: marker, ring, moderation ──▶ b0 receives
//!   a0 receives ◀── port a0: ring, moderation, marker ◀── link out of b ◀── b0 sends
//! ```
//!
//! A plane reads no clock and does not wait: `now` is an argument, and the plane's owner calls
//! when a descriptor can be read or a deadline has come. In real time that is the
//! [data-plane thread](crate::dataplane), in virtual time the [calendar](crate::calendar).
//!
//! The switch forwards at once; what a frame takes, it takes on the link of its sender.

use std::os::fd::BorrowedFd;

use base::time::{Duration, Instant};
use network::link::{Link, LinkSettings};
use network::switch::{Destination, Switch};
use nic::moderation::Moderation;
use nic::observer::Delivered;
use nic::port::{Port, PortSettings};

use crate::capture::Capture;
use crate::snapshot::{PortSnapshot, QueueSnapshot};
use hostside::trace::PortEvent;
use hostside::{Fetched, HostPort, HostSide, VirtualHost};

/// Frames taken from one host before the others, and the timers, have their turn. All of them count
/// as sent at the moment the first was taken, and a busy host sends on meanwhile: with 64 of them,
/// which cost a system call each, frame limits and delays below 100 us were the batch's.
const BATCH: usize = 8;

/// The same while time passes and frames are copied from memory, where a round of short frames
/// costs as much as eight of them.
const BATCH_FROM_MEMORY: usize = 32;

/// Bytes after which a batch ends: others wait while they are copied.
const BATCH_BYTES: usize = 72 << 10;

/// Frames that a link holds, waiting and on their way.
const LINK: usize = 16_384;

/// How long before the wire is free the next frame is fetched from a host's memory, so that the
/// wire never waits for it. Frames beyond that stay in the host's ring, where its queueing
/// discipline sees them.
const FETCH_AHEAD: Duration = Duration::from_micros(10);

/// A port to be.
pub struct PortPlan {
    /// The interface's name in its host.
    pub name: String,
    /// The host's end.
    pub host: Box<dyn HostSide>,
    /// The NIC's end.
    pub settings: PortSettings,
    /// The link on which the host's frames leave.
    pub link: LinkSettings,
}

struct PortState {
    name: String,
    inner: HostPort,
    /// What the host says of itself, for good.
    is_in_memory: bool,
    /// Frames taken from it at once.
    batch: usize,
    outgoing: Link<Vec<u8>>,
    /// When the wire, or the host's processor, lets go more of what was left in the host's ring.
    resume_at: Option<Instant>,
    /// The last batch was a full one, so there may be more.
    more: bool,
    vanished: Option<String>,
}

/// The ports, their links, and the switch.
pub struct Plane {
    ports: Vec<PortState>,
    switch: Switch,
    pool: Vec<Vec<u8>>,
    capture: Option<Capture>,
}

impl Plane {
    /// Joins the ports that `plans` describe.
    pub fn new(plans: Vec<PortPlan>, capture: Option<Capture>, now: Instant) -> Self {
        Self {
            switch: Switch::new(plans.len()),
            ports: plans.into_iter().map(|plan| PortState::new(plan, now)).collect(),
            pool: Vec::new(),
            capture,
        }
    }

    /// How many ports there are.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// Whether there is no port at all.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// The descriptors of port `number`, in the order of its host's sources.
    pub fn fds(&self, number: usize) -> Vec<BorrowedFd<'_>> {
        self.ports[number].inner.host.fds()
    }

    /// When [`carry`](Self::carry) and [`serve`](Self::serve) have something to do next; it may
    /// have passed.
    pub fn deadline(&self) -> Option<Instant> {
        let deadlines = self.ports.iter().flat_map(|state| {
            let more = state.more.then_some(Instant::ZERO);
            let link = [state.outgoing.next_arrival(), state.resume_at, more];
            state.inner.deadline().into_iter().chain(link.into_iter().flatten())
        });
        deadlines.min()
    }

    /// Takes note of what the host of port `number` has done; `ready` if one of its descriptors can
    /// be read.
    pub fn sync(&mut self, now: Instant, number: usize, ready: bool) {
        self.ports[number].inner.sync(now, ready);
    }

    /// Puts what the host of port `number` has sent on `source` onto its link, at most a batch; how
    /// many frames that was.
    pub fn take(&mut self, now: Instant, number: usize, source: usize) -> usize {
        let state = &mut self.ports[number];
        state.more = false;
        let (mut taken, mut bytes) = (0, 0);
        while taken < state.batch && bytes < BATCH_BYTES {
            if state.must_wait_for_the_wire(now) {
                return taken;
            }
            let mut frame = self.pool.pop().unwrap_or_default();
            match state.inner.transmit(now, source, &mut frame) {
                Ok(Fetched::Frame) => taken += 1,
                Ok(Fetched::Dropped) => {
                    self.pool.push(frame);
                    taken += 1;
                    continue;
                }
                Ok(Fetched::Nothing) => {
                    self.pool.push(frame);
                    return taken;
                }
                Ok(Fetched::Later(at)) => {
                    self.pool.push(frame);
                    state.resume_at = Some(at);
                    return taken;
                }
                Err(error) => {
                    self.vanish(number, &error.to_string());
                    return taken;
                }
            }
            bytes += frame.len();
            if let Some(capture) = &mut self.capture {
                capture.transmitted(number as u32, now, &frame);
            }
            if let Err(dropped) = state.outgoing.send(now, frame) {
                self.pool.push(dropped.into_frame());
            }
        }
        // A descriptor says by itself that there is more.
        self.ports[number].more = self.ports[number].is_in_memory;
        taken
    }

    pub(crate) fn take_all(&mut self, now: Instant, number: usize) {
        for source in 0..self.fds(number).len().max(1) {
            while self.take(now, number, source) > 0 {}
        }
    }

    /// Puts onto the links what hosts have sent that can be asked for next to nothing; how many
    /// frames that was.
    pub fn take_from_memory(&mut self, now: Instant) -> usize {
        let mut taken = 0;
        for number in 0..self.ports.len() {
            if self.ports[number].is_in_memory {
                taken += self.take(now, number, 0);
            }
        }
        taken
    }

    /// Whether looking for frames costs next to nothing with every host.
    pub fn is_in_memory(&self) -> bool {
        self.ports.iter().all(|state| state.is_in_memory)
    }

    /// Moves what the links have carried into the rings, and lets DMAs and timers act; how many
    /// frames that was.
    pub fn carry(&mut self, now: Instant) -> usize {
        let mut carried = 0;
        let has_come =
            |state: &PortState| state.outgoing.next_arrival().is_some_and(|at| at <= now);
        if self.ports.iter().any(has_come) {
            self.ports.iter_mut().for_each(|state| state.inner.make_room());
        }
        for number in 0..self.ports.len() {
            if self.ports[number].resume_at.is_some_and(|at| at <= now) {
                self.take_all(now, number);
            }
        }
        for from in 0..self.ports.len() {
            while let Some((_, frame)) = self.ports[from].outgoing.receive(now) {
                carried += 1;
                match self.switch.forward(from, &frame) {
                    Destination::Port(to) => self.arrive(now, to, frame),
                    Destination::Others => self.flood(now, from, frame),
                    Destination::Nowhere => self.pool.push(frame),
                }
            }
        }
        for state in &mut self.ports {
            state.inner.advance(now);
        }
        carried
    }

    fn arrive(&mut self, now: Instant, to: usize, frame: Vec<u8>) {
        if let Err(dropped) = self.ports[to].inner.receive(now, frame) {
            self.pool.push(dropped.into_frame());
        }
    }

    fn flood(&mut self, now: Instant, from: usize, frame: Vec<u8>) {
        for to in (0..self.ports.len()).filter(|to| *to != from) {
            let mut copy = self.pool.pop().unwrap_or_default();
            copy.clone_from(&frame);
            self.arrive(now, to, copy);
        }
        self.pool.push(frame);
    }

    /// Lets every host have what its port has for it.
    pub fn serve(&mut self, now: Instant) {
        for number in 0..self.ports.len() {
            let Self { ports, pool, capture, .. } = self;
            let delivered = &mut |delivered: &Delivered, frame: &[u8]| {
                if let Some(capture) = capture {
                    capture.delivered(number as u32, delivered, frame);
                }
            };
            if let Err(error) = ports[number].inner.serve(now, pool, delivered) {
                self.vanish(number, &error.to_string());
            }
        }
    }

    pub(crate) fn virtual_hosts(&mut self) -> impl Iterator<Item = &mut dyn VirtualHost> {
        self.ports.iter_mut().filter_map(|state| state.inner.host.virtual_time())
    }

    pub(crate) fn virtual_host(&mut self, number: usize) -> Option<&mut dyn VirtualHost> {
        self.ports.get_mut(number)?.inner.host.virtual_time()
    }

    pub(crate) fn vanish(&mut self, number: usize, reason: &str) {
        self.ports[number].vanished.get_or_insert_with(|| reason.to_owned());
    }

    pub(crate) fn has_vanished(&self, number: usize) -> bool {
        self.ports[number].vanished.is_some()
    }

    pub(crate) fn receive_time(&self) -> Duration {
        let times = self.ports.iter().map(|state| state.inner.host.receive_time());
        times.fold(Duration::ZERO, |sum, time| sum + time)
    }

    /// What the ports have counted up to `now`.
    pub fn snapshot(&self, now: Instant) -> Vec<PortSnapshot> {
        self.ports.iter().map(|state| state.snapshot(now)).collect()
    }

    /// The last events of each port, oldest first.
    pub fn events(&self) -> Vec<Vec<PortEvent>> {
        self.ports.iter().map(|state| state.inner.watch.events()).collect()
    }

    /// The names of the ports.
    pub fn port_names(&self) -> Vec<&str> {
        self.ports.iter().map(|state| state.name.as_str()).collect()
    }

    /// The NIC's side of port `number`, to change its rules and lanes.
    pub fn port_mut(&mut self, number: usize) -> &mut Port<Vec<u8>> {
        &mut self.ports[number].inner.port
    }

    /// Whether the host of port `number` has moderation registers of its own.
    pub fn has_registers(&self, number: usize) -> bool {
        self.interval(number, 0).is_some()
    }

    /// The least time between two interrupts of a receive queue that the driver of the host of port
    /// `number` has asked for, if it moderates by registers.
    pub fn interval(&self, number: usize, queue: usize) -> Option<Duration> {
        self.ports[number].inner.host.interval(queue)
    }

    /// Plugs the cable of port `number` in, or pulls it out; `false` if the NIC of its host cannot
    /// tell its driver. Frames that arrive meanwhile are lost, and count as refused.
    pub fn set_link(&mut self, now: Instant, number: usize, up: bool) -> bool {
        let can = self.ports[number].inner.host.set_link(up);
        self.serve(now);
        can
    }

    /// Disconnects the frontend of port `number`; `false` if there is none.
    pub fn evict(&mut self, number: usize) -> bool {
        self.ports[number].inner.host.evict()
    }

    /// Changes the moderation of one queue of a port, or of all; packets may be pending. A setting
    /// with lanes means something else to queues that are one.
    pub fn set_moderation(
        &mut self,
        now: Instant,
        number: usize,
        queue: Option<u16>,
        moderation: Moderation,
    ) {
        let HostPort { port, watch, .. } = &mut self.ports[number].inner;
        let count = port.queues().len() as u16;
        for at in (0..count).filter(|at| queue.is_none_or(|queue| queue == *at)) {
            let moderation = moderation.of_queue(port.is_lane(at));
            port.queues_mut()[usize::from(at)].set_moderation(now, moderation, watch);
        }
    }

    /// Draws the faults of each link anew; that of the host of port N from the N-th of `seeds`.
    pub fn reseed_links(&mut self, seeds: impl Iterator<Item = u64>) {
        for (state, seed) in self.ports.iter_mut().zip(seeds) {
            state.outgoing.reseed(seed);
        }
    }

    /// Ends the capture and hands it over to be finished.
    pub fn take_capture(&mut self) -> Option<Capture> {
        self.capture.take()
    }
}

impl PortState {
    fn new(mut plan: PortPlan, now: Instant) -> Self {
        let is_in_memory = plan.host.is_in_memory();
        let time_passes = plan.host.virtual_time().is_none();
        Self {
            name: plan.name,
            is_in_memory,
            batch: if is_in_memory && time_passes { BATCH_FROM_MEMORY } else { BATCH },
            inner: HostPort::new(plan.host, plan.settings, now),
            outgoing: Link::new(plan.link, LINK),
            resume_at: None,
            more: false,
            vanished: None,
        }
    }

    /// Whether the host's next frame stays where it is, because the wire is busy for a while.
    fn must_wait_for_the_wire(&mut self, now: Instant) -> bool {
        let fetch_at = Instant::ZERO + (self.outgoing.free_at().since(Instant::ZERO) - FETCH_AHEAD);
        let wait = self.is_in_memory && fetch_at > now;
        self.resume_at = wait.then_some(fetch_at);
        wait
    }

    fn snapshot(&self, now: Instant) -> PortSnapshot {
        let HostPort { host, port, watch } = &self.inner;
        PortSnapshot {
            name: self.name.clone(),
            queues: port.queues().iter().map(QueueSnapshot::of).collect(),
            counters: port.counters(),
            rules: port.rules().to_string(),
            lanes: port.lanes().texts().zip(port.lane_packets().iter().copied()).collect(),
            holds: watch.holds.clone(),
            link: self.outgoing.counters(),
            refused: host.refused(),
            attachment: host.attachment(),
            busy: host.busy(now),
            vanished: self.vanished.clone(),
        }
    }
}
