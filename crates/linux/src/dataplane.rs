//! The data plane: one thread that is the NIC of two hosts and the cable between them.
//!
//! ```text
//!   host a                    the data-plane thread                      host b
//!   stack ── TAP a0 ──▶ link a→b ──▶ port b0: marker, ring, moderation ──▶ TAP b0 ── stack
//!   stack ◀── TAP a0 ── port a0: ring, moderation, marker ◀── link b→a ◀── TAP b0 ── stack
//! ```
//!
//! Each round it takes what the hosts sent, moves what the links have carried into the rings, lets
//! DMAs and timers act, and plays the hosts' driver: a host that was interrupted is polled, 64
//! packets at a time, until a poll finds nothing, and is then re-armed. Between two polls the wire
//! is looked at again, so that a packet that arrives during a poll is found by it, as under NAPI.
//! Handing a frame to a TAP runs the receiving host's whole stack in this thread; that time is
//! counted apart, as the host's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use nic::link::{Link, LinkSettings};
use nic::moderation::Moderation;
use nic::port::{Port, PortSettings};
use nic::time::{Duration, Instant};
use rustix::event::{EventfdFlags, eventfd};

use crate::capture::Capture;
use crate::clock;
use crate::snapshot::{PortSnapshot, QueueSnapshot, Snapshot};
use crate::trace::{Event, Watch};
use crate::wait::{Waiter, Waiting};

/// Packets that a host takes in one poll, as NAPI's weight.
const BUDGET: usize = 64;

/// Frames taken from one host before the others have their turn.
const BATCH: usize = 64;

/// Frames that a cable holds, waiting and on their way.
const CABLE: usize = 16_384;

/// What the waiter reports when a command has come.
const WAKE: u64 = u64::MAX;

/// The host's end of a port: where its stack sends to and receives from.
///
/// Queues are numbered from 0; asking for one that does not exist is a defect and panics.
pub trait HostSide: Send {
    /// How many queues it has.
    fn queues(&self) -> usize;

    /// What becomes readable when the host has sent something on `queue`.
    fn fd(&self, queue: usize) -> BorrowedFd<'_>;

    /// Takes the next frame that the host sent on `queue` in place of what is in `frame`; `false`
    /// if there is none.
    ///
    /// # Errors
    /// If the interface is gone.
    fn transmit(&self, queue: usize, frame: &mut Vec<u8>) -> io::Result<bool>;

    /// Hands a frame to the host.
    ///
    /// # Errors
    /// If the host does not take it.
    fn deliver(&self, queue: usize, frame: &[u8]) -> io::Result<()>;
}

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
    host: Box<dyn HostSide>,
    port: Port<Vec<u8>>,
    outgoing: Link<Vec<u8>>,
    polling: Vec<bool>,
    watch: Watch,
    refused: u64,
    vanished: Option<String>,
}

type Command = Box<dyn FnOnce(&mut DataPlane) + Send>;

/// The state of the data-plane thread. Everything a command can see or change is here.
pub struct DataPlane {
    ports: [PortState; 2],
    pool: Vec<Vec<u8>>,
    waiter: Waiter,
    capture: Option<Capture>,
    delivering: Duration,
    commands: Receiver<Command>,
    wake: Arc<OwnedFd>,
    stopped: bool,
}

/// Why a data plane does not run, or no longer does.
#[derive(Debug, thiserror::Error)]
pub enum DataPlaneError {
    /// A system call failed while it was set up.
    #[error("start the data plane: {0}")]
    Start(#[from] io::Error),
    /// Its thread is gone.
    #[error(
        "the data-plane thread has ended; this is a defect, please report it with the command that led to it"
    )]
    Gone,
}

impl From<rustix::io::Errno> for DataPlaneError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Start(errno.into())
    }
}

/// A running data plane. It stops when this is dropped.
#[derive(Debug)]
pub struct Handle {
    commands: Sender<Command>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the thread, its epoll or its event descriptor cannot be had.
    pub fn start(
        plans: [PortPlan; 2],
        waiting: Waiting,
        capture: Option<Capture>,
    ) -> Result<Self, DataPlaneError> {
        let (commands, received) = channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (ready, started) = channel();
        let woken = Arc::clone(&wake);
        let thread = std::thread::Builder::new().name("earmark-nic".into()).spawn(move || {
            match DataPlane::new(plans, waiting, capture, received, woken) {
                Ok(mut plane) => {
                    let _ = ready.send(Ok(()));
                    plane.run();
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        })?;
        started.recv().map_err(|_| DataPlaneError::Gone)??;
        Ok(Self { commands, wake, thread: Some(thread) })
    }

    /// Runs `command` in the data-plane thread, between two rounds, and returns what it returns.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn call<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut DataPlane) -> T + Send + 'static,
    ) -> Result<T, DataPlaneError> {
        let (answer, answered) = channel();
        let command: Command = Box::new(move |plane| drop(answer.send(command(plane))));
        self.commands.send(command).map_err(|_| DataPlaneError::Gone)?;
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).map_err(|_| DataPlaneError::Gone)?;
        answered.recv().map_err(|_| DataPlaneError::Gone)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.call(|plane| plane.stopped = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl DataPlane {
    fn new(
        plans: [PortPlan; 2],
        waiting: Waiting,
        capture: Option<Capture>,
        commands: Receiver<Command>,
        wake: Arc<OwnedFd>,
    ) -> Result<Self, DataPlaneError> {
        let waiter = Waiter::new(waiting)?;
        waiter.add(wake.as_fd(), WAKE)?;
        for (number, plan) in plans.iter().enumerate() {
            for queue in 0..plan.host.queues() {
                waiter.add(plan.host.fd(queue), token(number, queue))?;
            }
        }
        let now = clock::now();
        Ok(Self {
            ports: plans.map(|plan| PortState::new(plan, now)),
            pool: Vec::new(),
            waiter,
            capture,
            delivering: Duration::ZERO,
            commands,
            wake,
            stopped: false,
        })
    }

    fn run(&mut self) {
        let mut ready = Vec::with_capacity(64);
        while !self.stopped {
            let deadline = if self.polling() { Some(clock::now()) } else { self.deadline() };
            match self.waiter.wait(deadline, &mut ready) {
                Ok(()) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return self.vanish_all(&errno.to_string()),
            }
            for &token in &ready {
                match token {
                    WAKE => self.obey(),
                    _ => self.take_from_host(port_of(token), queue_of(token)),
                }
            }
            self.carry();
            self.serve_hosts();
        }
    }

    fn polling(&self) -> bool {
        self.ports.iter().any(|state| state.polling.contains(&true))
    }

    fn deadline(&self) -> Option<Instant> {
        let deadlines = self.ports.iter().flat_map(|state| {
            [state.port.deadline(), state.outgoing.next_arrival()].into_iter().flatten()
        });
        deadlines.min()
    }

    /// Runs the commands that have come.
    fn obey(&mut self) {
        let _ = rustix::io::read(&*self.wake, &mut [0_u8; 8]);
        while let Ok(command) = self.commands.try_recv() {
            command(self);
        }
    }

    /// Puts what a host has sent onto its link.
    fn take_from_host(&mut self, number: usize, queue: usize) {
        let state = &mut self.ports[number];
        let now = clock::now();
        for _ in 0..BATCH {
            let mut frame = self.pool.pop().unwrap_or_default();
            match state.host.transmit(queue, &mut frame) {
                Ok(true) => {}
                Ok(false) => return self.pool.push(frame),
                Err(error) => return self.vanish(number, &error.to_string()),
            }
            if let Some(capture) = &mut self.capture {
                capture.transmitted(number as u32, now, &frame);
            }
            state.port.transmitted(now, &mut state.watch);
            if let Err(dropped) = state.outgoing.send(now, frame) {
                self.pool.push(dropped.into_frame());
            }
        }
    }

    /// Moves what the links have carried into the rings, and lets DMAs and timers act.
    fn carry(&mut self) {
        let now = clock::now();
        for from in 0..2 {
            let to = 1 - from;
            while let Some((_, frame)) = self.ports[from].outgoing.receive(now) {
                if let Err(dropped) = self.ports[to].port.receive(now, frame) {
                    self.pool.push(dropped.into_frame());
                }
            }
            let state = &mut self.ports[to];
            state.port.advance(now, &mut state.watch);
        }
    }

    /// Polls the hosts that were interrupted, and re-arms those that have taken everything.
    fn serve_hosts(&mut self) {
        for number in 0..2 {
            for queue in 0..self.ports[number].polling.len() {
                let state = &mut self.ports[number];
                state.polling[queue] |= state.port.queues_mut()[queue].take_interrupt();
                if state.polling[queue] {
                    self.poll(number, queue);
                }
            }
        }
    }

    fn poll(&mut self, number: usize, queue: usize) {
        let before = clock::thread_cpu_time();
        let now = clock::now();
        let Self { ports, pool, capture, .. } = self;
        let PortState { host, port, watch, polling, refused, .. } = &mut ports[number];
        let receive_queue = &mut port.queues_mut()[queue];
        let mut gone = None;
        let taken = receive_queue.poll(now, BUDGET, watch, |delivered, frame| {
            if let Some(capture) = capture {
                capture.delivered(number as u32, delivered, &frame);
            }
            if let Err(error) = host.deliver(queue, &frame) {
                *refused += 1;
                gone = is_gone(&error).then(|| error.to_string());
            }
            pool.push(frame);
        });
        if taken == 0 {
            polling[queue] = false;
            receive_queue.rearm(clock::now(), watch);
        }
        self.delivering = self.delivering + (clock::thread_cpu_time() - before);
        if let Some(reason) = gone {
            self.vanish(number, &reason);
        }
    }

    fn vanish(&mut self, number: usize, reason: &str) {
        let state = &mut self.ports[number];
        for queue in 0..state.host.queues() {
            let _ = self.waiter.remove(state.host.fd(queue));
        }
        state.vanished.get_or_insert_with(|| reason.to_owned());
    }

    fn vanish_all(&mut self, reason: &str) {
        (0..2).for_each(|number| self.vanish(number, reason));
    }

    /// What has been counted so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let carried = |number: usize| self.ports[1 - number].outgoing.counters();
        let ports = self.ports.iter().enumerate();
        Snapshot {
            at: clock::now(),
            cpu: clock::thread_cpu_time(),
            delivering: self.delivering,
            spun: self.waiter.spun(),
            overshoot: self.waiter.overshoot().clone(),
            ports: ports.map(|(number, state)| state.snapshot(carried(number))).collect(),
        }
    }

    /// The last events of each port, oldest first.
    #[must_use]
    pub fn events(&self) -> [Vec<Event>; 2] {
        [self.ports[0].watch.events(), self.ports[1].watch.events()]
    }

    /// The names of the ports.
    #[must_use]
    pub fn port_names(&self) -> [&str; 2] {
        [&self.ports[0].name, &self.ports[1].name]
    }

    /// The NIC's side of port `number`, to change its rules.
    pub fn port_mut(&mut self, number: usize) -> &mut Port<Vec<u8>> {
        &mut self.ports[number].port
    }

    /// Changes the moderation of one queue of a port, or of all; packets may be pending.
    pub fn set_moderation(&mut self, number: usize, queue: Option<u16>, moderation: Moderation) {
        let state = &mut self.ports[number];
        let chosen = |at: usize| queue.is_none_or(|queue| usize::from(queue) == at);
        for (at, receive_queue) in state.port.queues_mut().iter_mut().enumerate() {
            if chosen(at) {
                receive_queue.set_moderation(clock::now(), moderation, &mut state.watch);
            }
        }
    }

    /// Ends the capture and hands it over to be finished.
    pub fn take_capture(&mut self) -> Option<Capture> {
        self.capture.take()
    }
}

impl PortState {
    fn new(plan: PortPlan, now: Instant) -> Self {
        let queues = usize::from(plan.settings.queues.max(1));
        Self {
            name: plan.name,
            host: plan.host,
            port: Port::new(plan.settings, now),
            outgoing: Link::new(plan.link, CABLE),
            polling: vec![false; queues],
            watch: Watch::new(),
            refused: 0,
            vanished: None,
        }
    }

    fn snapshot(&self, link: nic::link::LinkCounters) -> PortSnapshot {
        PortSnapshot {
            name: self.name.clone(),
            queues: self.port.queues().iter().map(QueueSnapshot::of).collect(),
            counters: self.port.counters(),
            rules: self.port.rules().to_string(),
            holds: self.watch.holds.clone(),
            link,
            refused: self.refused,
            vanished: self.vanished.clone(),
        }
    }
}

/// Whether an interface is gone for good, rather than down or short of memory.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::BADFD.raw_os_error())
}

const fn token(port: usize, queue: usize) -> u64 {
    (port as u64) << 16 | queue as u64
}

const fn port_of(token: u64) -> usize {
    (token >> 16) as usize
}

const fn queue_of(token: u64) -> usize {
    (token & 0xFFFF) as usize
}
