//! What both owners share: the ports, the waiter, and commands from other threads.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use base::time::{Duration, Instant};
use nic::moderation::Moderation;
use rustix::event::{EventfdFlags, eventfd};

use crate::capture::Capture;
use crate::plane::{Plane, PortPlan};
use crate::snapshot::Snapshot;
use crate::wait::{Waiter, Waiting};
use sys::cpu;

/// What the waiter reports when a command has come.
pub(super) const WAKE: u64 = u64::MAX;

pub(super) type PlaneCommand = Box<dyn FnOnce(&mut DataPlane) + Send>;

/// What commands can read and change, in real and in virtual time.
pub struct DataPlane {
    pub(super) plane: Plane,
    pub(super) waiter: Waiter,
    commands: Receiver<PlaneCommand>,
    /// Those that have come and still have to run.
    waiting: VecDeque<PlaneCommand>,
    /// Readable when there are commands, or never will be again.
    wake: Arc<OwnedFd>,
    /// When commands run.
    pub(super) now: Instant,
    /// CPU time of the thread until then; none in virtual time.
    cpu: Duration,
    /// No handle is left that could send a command.
    pub(super) stopped: bool,
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
    /// There until this is dropped.
    commands: Option<Sender<PlaneCommand>>,
    wake: Arc<OwnedFd>,
    nice: i32,
    thread: Option<JoinHandle<()>>,
}

pub(super) struct Start {
    pub(super) plans: Vec<PortPlan>,
    pub(super) capture: Option<Capture>,
    pub(super) waiting: Waiting,
    pub(super) now: Instant,
    /// The thread runs before others where it may.
    pub(super) comes_first: bool,
}

impl Handle {
    pub(super) fn spawn(
        start: Start,
        run: impl FnOnce(DataPlane) + Send + 'static,
    ) -> Result<Self, DataPlaneError> {
        let (commands, received) = channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let wakes = Arc::clone(&wake);
        let (ready, started) = channel();
        let Start { plans, capture, waiting, now, comes_first } = start;
        let plane = Plane::new(plans, capture, now);
        let thread = move || {
            // A waiter is its thread's own.
            let data = Waiter::new(waiting)
                .and_then(|waiter| DataPlane::new(plane, waiter, received, wakes, now));
            match data {
                Ok(data) => {
                    let _ = ready.send(Ok(if comes_first { cpu::come_first() } else { 0 }));
                    run(data);
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        };
        let thread = std::thread::Builder::new().name("earmark-nic".into()).spawn(thread)?;
        let nice = started.recv().map_err(|_| DataPlaneError::Gone)??;
        Ok(Self { commands: Some(commands), wake, nice, thread: Some(thread) })
    }

    /// The nice value of the thread: -20 where it may come before others.
    pub fn nice(&self) -> i32 {
        self.nice
    }

    /// Runs `command` in the data-plane thread, between two events, and returns what it returns.
    ///
    /// In virtual time that may take until the running guest has sent a message.
    pub fn call<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut DataPlane) -> T + Send + 'static,
    ) -> Result<T, DataPlaneError> {
        let (command, answered) = answering(command);
        let commands = self.commands.as_ref().ok_or(DataPlaneError::Gone)?;
        commands.send(command).map_err(|_| DataPlaneError::Gone)?;
        self.wake();
        answered.recv().map_err(|_| DataPlaneError::Gone)
    }

    fn wake(&self) {
        // It fails only if the thread would wake up anyway.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

/// A command, and where what it returns can be received.
pub(super) fn answering<T: Send + 'static>(
    command: impl FnOnce(&mut DataPlane) -> T + Send + 'static,
) -> (PlaneCommand, Receiver<T>) {
    let (answer, answered) = channel();
    (Box::new(move |plane| drop(answer.send(command(plane)))), answered)
}

impl Drop for Handle {
    /// Not by a command: in virtual time those wait, for a guest that may never come.
    fn drop(&mut self) {
        drop(self.commands.take());
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl DataPlane {
    fn new(
        plane: Plane,
        waiter: Waiter,
        commands: Receiver<PlaneCommand>,
        wake: Arc<OwnedFd>,
        now: Instant,
    ) -> rustix::io::Result<Self> {
        waiter.add(wake.as_fd(), WAKE)?;
        for number in 0..plane.len() {
            for (source, fd) in plane.fds(number).into_iter().enumerate() {
                waiter.add(fd, token(number, source))?;
            }
        }
        let waiting = VecDeque::new();
        let (cpu, stopped) = (Duration::ZERO, false);
        Ok(Self { plane, waiter, commands, waiting, wake, now, cpu, stopped })
    }

    /// Takes note of the commands that have come. From now on, only another one, or the end of
    /// the handle, makes the descriptor readable.
    pub(super) fn take_commands(&mut self) {
        let _ = rustix::io::read(&*self.wake, &mut [0_u8; 8]);
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.waiting.push_back(command),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => return self.stopped = true,
            }
        }
    }

    pub(super) fn has_commands(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn run_commands(&mut self, now: Instant, cpu: Duration) {
        (self.now, self.cpu) = (now, cpu);
        self.take_commands();
        while let Some(command) = self.waiting.pop_front() {
            command(self);
        }
    }

    /// The time, as the data plane's hosts see it.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// What has been counted so far.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            at: self.now,
            cpu: self.cpu,
            delivering: self.plane.receive_time(),
            spun: self.waiter.spun(),
            overshoot: self.waiter.overshoot().clone(),
            ports: self.plane.snapshot(self.now),
        }
    }

    /// The ports, by number.
    pub fn plane(&mut self) -> &mut Plane {
        &mut self.plane
    }

    /// Plugs the cable of a port in, or pulls it out; `false` if the NIC of its host cannot tell
    /// its driver.
    pub fn set_link(&mut self, number: usize, up: bool) -> bool {
        self.plane.set_link(self.now, number, up)
    }

    /// Changes the moderation of one queue of a port, or of all; packets may be pending.
    pub fn set_moderation(&mut self, number: usize, queue: Option<u16>, moderation: Moderation) {
        self.plane.set_moderation(self.now, number, queue, moderation);
    }
}

const fn token(port: usize, source: usize) -> u64 {
    (port as u64) << 16 | source as u64
}

pub(super) const fn port_of(token: u64) -> usize {
    (token >> 16) as usize
}

pub(super) const fn source_of(token: u64) -> usize {
    (token & 0xFFFF) as usize
}
