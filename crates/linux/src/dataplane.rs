//! The data plane in real time: one thread that owns a [`Plane`].
//!
//! It waits until a host has sent something or a deadline has come. Then each round takes note of
//! what the hosts have done, takes what they sent, moves what the links have carried into the
//! rings, lets DMAs and timers act, and gives the hosts what there is for them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use nic::moderation::Moderation;
use rustix::event::{EventfdFlags, eventfd};

use crate::capture::Capture;
use crate::clock;
use crate::plane::{Plane, PortPlan};
use crate::snapshot::Snapshot;
use crate::wait::{Waiter, Waiting};

/// What the waiter reports when a command has come.
const WAKE: u64 = u64::MAX;

type Command = Box<dyn FnOnce(&mut DataPlane) + Send>;

/// The state of the data-plane thread. Everything a command can see or change is here.
pub struct DataPlane {
    plane: Plane,
    waiter: Waiter,
    commands: Receiver<Command>,
    wake: Arc<OwnedFd>,
    /// Ports whose descriptors are waited for.
    heard: Vec<bool>,
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
        plans: Vec<PortPlan>,
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
        plans: Vec<PortPlan>,
        waiting: Waiting,
        capture: Option<Capture>,
        commands: Receiver<Command>,
        wake: Arc<OwnedFd>,
    ) -> Result<Self, DataPlaneError> {
        let waiter = Waiter::new(waiting)?;
        waiter.add(wake.as_fd(), WAKE)?;
        let plane = Plane::new(plans, capture, clock::now());
        for number in 0..plane.len() {
            for (source, fd) in plane.fds(number).into_iter().enumerate() {
                waiter.add(fd, token(number, source))?;
            }
        }
        let heard = vec![true; plane.len()];
        Ok(Self { plane, waiter, commands, wake, heard, stopped: false })
    }

    fn run(&mut self) {
        let mut ready = Vec::with_capacity(64);
        while !self.stopped {
            let deadline =
                if self.plane.is_busy() { Some(clock::now()) } else { self.plane.deadline() };
            match self.waiter.wait(deadline, &mut ready) {
                Ok(()) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => {
                    return (0..self.plane.len()).for_each(|number| self.vanish(number, errno));
                }
            }
            if ready.contains(&WAKE) {
                self.obey();
            }
            self.round(&ready);
        }
    }

    fn round(&mut self, ready: &[u64]) {
        let now = clock::now();
        let ours = |number: usize| move |&token: &u64| token != WAKE && port_of(token) == number;
        for number in 0..self.plane.len() {
            self.plane.attend(now, number, ready.iter().any(ours(number)));
        }
        for &token in ready.iter().filter(|token| **token != WAKE) {
            self.plane.take(clock::now(), port_of(token), source_of(token));
        }
        self.plane.take_from_memory(now);
        self.plane.carry(clock::now());
        self.plane.serve(clock::now());
        (0..self.plane.len()).for_each(|number| self.stop_hearing_the_dead(number));
    }

    /// A descriptor whose interface is gone would be readable for ever.
    fn stop_hearing_the_dead(&mut self, number: usize) {
        if self.heard[number] && self.plane.has_vanished(number) {
            self.heard[number] = false;
            for fd in self.plane.fds(number) {
                let _ = self.waiter.remove(fd);
            }
        }
    }

    /// Runs the commands that have come.
    fn obey(&mut self) {
        let _ = rustix::io::read(&*self.wake, &mut [0_u8; 8]);
        while let Ok(command) = self.commands.try_recv() {
            command(self);
        }
    }

    fn vanish(&mut self, number: usize, errno: rustix::io::Errno) {
        self.plane.vanish(number, &errno.to_string());
    }

    /// What has been counted so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            at: clock::now(),
            cpu: clock::thread_cpu_time(),
            delivering: self.plane.delivering(),
            spun: self.waiter.spun(),
            overshoot: self.waiter.overshoot().clone(),
            ports: self.plane.snapshot(),
        }
    }

    /// The ports.
    pub fn plane(&mut self) -> &mut Plane {
        &mut self.plane
    }

    /// Changes the moderation of one queue of a port, or of all; packets may be pending.
    pub fn set_moderation(&mut self, number: usize, queue: Option<u16>, moderation: Moderation) {
        self.plane.set_moderation(clock::now(), number, queue, moderation);
    }
}

const fn token(port: usize, source: usize) -> u64 {
    (port as u64) << 16 | source as u64
}

const fn port_of(token: u64) -> usize {
    (token >> 16) as usize
}

const fn source_of(token: u64) -> usize {
    (token & 0xFFFF) as usize
}
