//! The data plane: one thread that owns a [`Plane`] and decides what happens when.
//!
//! In real time (`real.rs`) it waits until a host has sent something or a deadline has come. In
//! virtual time (`virtual_time.rs`) it is the calendar of its guests, too, and nothing that it does
//! depends on when it gets to do it.
//!
//! Whoever has the [`Handle`] sees and changes the data plane by commands, which run in its thread
//! between two events.

mod real;
mod virtual_time;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use base::time::{Duration, Instant};
use nic::moderation::Moderation;
use rustix::event::{EventfdFlags, eventfd};

use crate::calendar::{Calendar, State};
use crate::capture::Capture;
use crate::plane::{Plane, PortPlan};
use crate::snapshot::Snapshot;
use crate::wait::{Waiter, Waiting};
use sys::clock;
use sys::cpu;

/// What the waiter reports when a command has come.
const WAKE: u64 = u64::MAX;

type Command = Box<dyn FnOnce(&mut DataPlane) + Send>;

/// The time that a data plane runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    /// The machine's.
    Real,
    /// The calendar's.
    Virtual,
}

/// The state of the data-plane thread. Everything a command can see or change is here.
pub struct DataPlane {
    plane: Plane,
    waiter: Waiter,
    time: Time,
    /// Without guests in real time.
    calendar: Calendar,
    /// Commands for moments to come, the first one first. In virtual time only.
    schedule: Vec<(Instant, Command)>,
    /// The guests that virtual time ends with.
    end_with: Option<Vec<usize>>,
    /// How long, in real time, a guest may run without a word before it is given up.
    patience: Duration,
    /// When, in real time, a guest last said something.
    heard_at: Instant,
    failure: Option<String>,
    outlook: Arc<Mutex<Outlook>>,
    orders: Orders,
    /// There are commands that wait for their moment. In virtual time only.
    commanded: bool,
    /// Ports whose descriptors are waited for.
    heard: Vec<bool>,
    stopped: bool,
}

/// Whether virtual time goes on. It can be looked at while a guest runs, when no command is obeyed.
#[derive(Clone, Debug, Default)]
pub struct Outlook {
    /// Virtual time has ended: the guests that it was to end with have gone, or all have.
    pub is_over: bool,
    /// Why time stands still for good, if it does.
    pub failure: Option<String>,
    /// For each guest: whether it has connected its clock.
    pub clocks: Vec<bool>,
    /// The time of the last event.
    pub now: Instant,
}

/// Where commands come in.
struct Orders {
    commands: Receiver<Command>,
    /// Readable when there are some.
    wake: Arc<OwnedFd>,
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
    outlook: Arc<Mutex<Outlook>>,
    nice: i32,
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    /// Starts the thread in real time.
    ///
    /// # Errors
    /// If the thread, its epoll or its event descriptor cannot be had.
    pub fn start(
        plans: Vec<PortPlan>,
        waiting: Waiting,
        capture: Option<Capture>,
    ) -> Result<Self, DataPlaneError> {
        Self::spawn(plans, Time::Real, Calendar::new(Vec::new())?, waiting, capture)
    }

    /// Starts the thread in virtual time: port `n` is that of the calendar's guest `n`. Nothing
    /// happens until every guest has connected.
    ///
    /// # Errors
    /// If the thread, its epoll or its event descriptor cannot be had.
    pub fn start_virtual(
        plans: Vec<PortPlan>,
        calendar: Calendar,
        capture: Option<Capture>,
    ) -> Result<Self, DataPlaneError> {
        Self::spawn(plans, Time::Virtual, calendar, Waiting::Sleep, capture)
    }

    fn spawn(
        plans: Vec<PortPlan>,
        time: Time,
        calendar: Calendar,
        waiting: Waiting,
        capture: Option<Capture>,
    ) -> Result<Self, DataPlaneError> {
        let (commands, received) = channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let orders = Orders { commands: received, wake: Arc::clone(&wake) };
        let now = if time == Time::Real { clock::now() } else { calendar.now() };
        let plane = Plane::new(plans, capture, now);
        let (ready, started) = channel();
        let outlook = Arc::new(Mutex::new(Outlook::default()));
        let shown = Arc::clone(&outlook);
        let run = move || {
            // A waiter is its thread's own.
            let waiter = Waiter::new(waiting);
            let plane =
                waiter.and_then(|w| DataPlane::new(plane, (time, calendar), w, orders, shown));
            // In made-up time nobody is late, and who spins has a processor already.
            let comes_first = time == Time::Real && waiting != Waiting::Spin;
            match plane {
                Ok(mut plane) => {
                    let _ = ready.send(Ok(if comes_first { cpu::come_first() } else { 0 }));
                    match time {
                        Time::Real => plane.run_in_real_time(),
                        Time::Virtual => plane.run_in_virtual_time(),
                    }
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        };
        let thread = std::thread::Builder::new().name("earmark-nic".into()).spawn(run)?;
        let nice = started.recv().map_err(|_| DataPlaneError::Gone)??;
        Ok(Self { commands, wake, outlook, nice, thread: Some(thread) })
    }

    /// The nice value of the thread: -20 where it may come before others.
    #[must_use]
    pub fn nice(&self) -> i32 {
        self.nice
    }

    /// Whether virtual time goes on; does not wait for anything.
    #[must_use]
    pub fn outlook(&self) -> Outlook {
        self.outlook.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs `command` in the data-plane thread, between two events, and returns what it returns.
    ///
    /// In virtual time that may take until the guest that runs has said something.
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

    /// Runs `command` at the virtual time `at`, before anything else that happens at that moment;
    /// what it returns can be received then. If time never gets there, nothing is.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn at<T: Send + 'static>(
        &self,
        at: Instant,
        command: impl FnOnce(&mut DataPlane) -> T + Send + 'static,
    ) -> Result<Receiver<T>, DataPlaneError> {
        let (answer, answered) = channel();
        let command: Command = Box::new(move |plane| drop(answer.send(command(plane))));
        self.call(move |plane| plane.plan(at, command))?;
        Ok(answered)
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
        plane: Plane,
        (time, calendar): (Time, Calendar),
        waiter: Waiter,
        orders: Orders,
        outlook: Arc<Mutex<Outlook>>,
    ) -> rustix::io::Result<Self> {
        waiter.add(orders.wake.as_fd(), WAKE)?;
        for number in 0..plane.len() {
            for (source, fd) in plane.fds(number).into_iter().enumerate() {
                waiter.add(fd, token(number, source))?;
            }
        }
        let heard = vec![true; plane.len()];
        let schedule = Vec::new();
        let failure = None;
        let (commanded, stopped) = (false, false);
        Ok(Self {
            plane,
            waiter,
            time,
            calendar,
            schedule,
            end_with: None,
            patience: Duration::from_micros(120_000_000),
            heard_at: clock::now(),
            failure,
            outlook,
            orders,
            commanded,
            heard,
            stopped,
        })
    }

    fn plan(&mut self, at: Instant, command: Command) {
        let position = self.schedule.partition_point(|(other, _)| *other <= at);
        self.schedule.insert(position, (at, command));
    }

    /// Runs the commands that have come.
    fn obey(&mut self) {
        self.commanded = false;
        self.quiet();
        while let Ok(command) = self.orders.commands.try_recv() {
            command(self);
        }
    }

    /// Takes note that there are commands, so that only another one is heard.
    fn quiet(&self) {
        let _ = rustix::io::read(&*self.orders.wake, &mut [0_u8; 8]);
    }

    /// A descriptor whose interface is gone would be readable for ever.
    fn stop_hearing_the_dead(&mut self) {
        for number in 0..self.plane.len() {
            if self.heard[number] && self.plane.has_vanished(number) {
                self.heard[number] = false;
                for fd in self.plane.fds(number) {
                    let _ = self.waiter.remove(fd);
                }
            }
        }
    }

    /// The time, as the data plane's hosts see it.
    #[must_use]
    pub fn now(&self) -> Instant {
        match self.time {
            Time::Real => clock::now(),
            Time::Virtual => self.calendar.now(),
        }
    }

    /// What has been counted so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (now, real) = (self.now(), self.time == Time::Real);
        Snapshot {
            at: now,
            cpu: if real { clock::thread_cpu_time() } else { Duration::ZERO },
            delivering: self.plane.delivering(),
            spun: self.waiter.spun(),
            overshoot: self.waiter.overshoot().clone(),
            ports: self.plane.snapshot(now),
        }
    }

    /// The ports.
    pub fn plane(&mut self) -> &mut Plane {
        &mut self.plane
    }

    /// Virtual time is to end when these guests have gone.
    pub fn end_with(&mut self, guests: Vec<usize>) {
        self.end_with = Some(guests);
    }

    /// In virtual time, a guest that computes for longer than this, in real time, is given up.
    pub fn set_patience(&mut self, patience: std::time::Duration) {
        self.patience = clock::span(patience);
    }

    /// Lets everybody see how things are.
    fn show(&self) {
        let clocks = (0..self.calendar.len()).map(|n| self.calendar.state(n) != State::Absent);
        let outlook = Outlook {
            is_over: self.is_over(),
            failure: self.failure.clone(),
            clocks: clocks.collect(),
            now: self.calendar.now(),
        };
        *self.outlook.lock().unwrap_or_else(PoisonError::into_inner) = outlook;
    }

    fn is_over(&self) -> bool {
        let gone = |number: usize| self.calendar.state(number) == State::Gone;
        match &self.end_with {
            Some(guests) => guests.iter().all(|&guest| gone(guest)),
            None => (0..self.calendar.len()).all(gone),
        }
    }

    /// Changes the moderation of one queue of a port, or of all; packets may be pending.
    pub fn set_moderation(&mut self, number: usize, queue: Option<u16>, moderation: Moderation) {
        let now = self.now();
        self.plane.set_moderation(now, number, queue, moderation);
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
