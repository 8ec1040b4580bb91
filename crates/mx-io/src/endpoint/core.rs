//! What the threads of an endpoint share.

use std::sync::{Arc, Condvar};

use base::time::Instant;
use mx::buffers::{Sink, Source};
use mx::ids::PeerId;
use mx::status::Event;
use rustc_hash::FxHashMap;

use super::completions::{CompletionQueue, Filter};
use super::error::MxError;
use super::event_fd::EventFd;
use super::request::{Completed, Label, Request};
use super::roles::{LEADER, LEASE, PROGRESS};
use super::sources::Sources;
use crate::discovery::{self, Asker};
use crate::port::{Port, PortError, Room, Transmitted};
use sys::clock;

/// Frames that are taken at a time, as a driver does (NAPI).
const BUDGET: usize = 64;

/// The engine, its port, and what has ended.
pub(super) struct Core<S, R> {
    pub(super) engine: mx::endpoint::Endpoint<S, R>,
    pub(super) port: Box<dyn Port>,
    /// Who looks for hosts, and answers those who do.
    pub(super) asker: Asker,
    /// What wakes those who sleep on it.
    pub(super) sources: Arc<Sources>,
    pub(super) ended: CompletionQueue<R>,
    /// The labels of attempts to connect.
    pub(super) connecting: FxHashMap<PeerId, Label>,
    /// Threads that sleep until somebody has something for them.
    pub(super) sleepers: Vec<Sleeper>,
    /// Threads of the application that are receiving.
    pub(super) drivers: u32,
    /// What the one wants that drives, if it waits for a request.
    pub(super) driven_for: Option<Filter>,
    /// When one last did.
    pub(super) driven_at: Instant,
    /// The progress thread has to be told when the last driver leaves.
    pub(super) wants_bell: bool,
    /// When the progress thread will look whether something is due, though there are drivers.
    pub(super) watched_at: Option<Instant>,
    /// Until when a driver and the progress thread will sleep on the port, if they do.
    pub(super) asleep: [Option<Instant>; 2],
    /// How often all who wait were told to return.
    pub(super) wakeups: u64,
    /// What is rung when a request has ended.
    pub(super) bells: Vec<Arc<EventFd>>,
    /// Somebody relies on the next of these.
    pub(super) rings: bool,
    /// What the port waits for before it takes more frames.
    pub(super) blocked: Option<Room>,
    pub(super) stopping: bool,
    /// The time, as of the latest look at the clock: each costs as much as a small message.
    now: Instant,
    broken: Option<String>,
}

pub(super) struct Sleeper {
    pub(super) want: Filter,
    pub(super) signal: Arc<Condvar>,
}

impl<S: Source, R: Sink> Core<S, R> {
    pub(super) fn new(
        engine: mx::endpoint::Endpoint<S, R>,
        port: Box<dyn Port>,
        sources: Arc<Sources>,
    ) -> Self {
        let asker = Asker::new(engine.address(), Some(discovery::host_name()));
        Self {
            engine,
            port,
            asker,
            sources,
            ended: CompletionQueue::default(),
            connecting: FxHashMap::default(),
            sleepers: Vec::new(),
            drivers: 0,
            driven_for: None,
            driven_at: Instant::ZERO,
            wants_bell: false,
            watched_at: None,
            asleep: [None; 2],
            wakeups: 0,
            bells: Vec::new(),
            rings: false,
            blocked: None,
            stopping: false,
            now: Instant::ZERO,
            broken: None,
        }
    }

    /// Looks at the clock.
    pub(super) fn tick(&mut self) -> Instant {
        self.now = clock::now();
        self.now
    }

    /// The time as of the latest look at the clock, which was a moment ago.
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// Receives what has come, does what is due, sends what there is to send; whether frames came.
    pub(super) fn advance(&mut self) -> Result<bool, MxError> {
        let mut any = false;
        loop {
            let now = self.tick();
            any |= self.receive(Some(now))?;
            self.send()?;
            // A port that is received from does not signal any more, until it is armed. Those who
            // sleep on it rely on the signal.
            if self.asleep == [None; 2] || !self.arm()? {
                return Ok(any);
            }
        }
    }

    /// Advances if a frame has come. This is for one who looks again and again, and soon will
    /// advance whether one has come or not: the clock costs more than a look into the port.
    pub(super) fn poll_fast(&mut self) -> Result<bool, MxError> {
        if self.asleep != [None; 2] || self.blocked.is_some() {
            return self.advance();
        }
        let any = self.receive(None)?;
        if any {
            self.send()?;
        }
        Ok(any)
    }

    /// Receives what has come. Without `now` the clock is looked at when there is something.
    fn receive(&mut self, mut now: Option<Instant>) -> Result<bool, MxError> {
        let Self { engine, port, asker, .. } = self;
        let take = &mut |from, bytes: &[u8]| {
            let now = *now.get_or_insert_with(clock::now);
            if !asker.handle_frame(now, from, bytes) {
                engine.handle_frame(now, from, bytes);
            }
        };
        let frames = port.receive(BUDGET, take).map_err(|error| self.breaks(error))?;
        let Some(now) = now else { return Ok(frames > 0) };
        self.now = now;
        // What seems to be missing may only not have been looked at: this thread may have been
        // away.
        let is_all = frames < BUDGET;
        if is_all && self.engine.deadline().is_some_and(|deadline| deadline <= now) {
            self.engine.handle_timeout(now);
        }
        Ok(frames > 0)
    }

    /// Whether the progress thread will see to what is `due`, a lease late at most, so that a
    /// driver need not set a timer for it: that costs as much as a frame, each time it sleeps.
    pub(super) fn is_watched(&self, role: usize, due: Instant) -> bool {
        role == LEADER && self.watched_at.is_some_and(|at| at <= due + clock::span(LEASE))
    }

    /// Asks the port for a signal; true if there is something already.
    pub(super) fn arm(&mut self) -> Result<bool, MxError> {
        self.port.arm().map_err(|error| self.breaks(error))
    }

    /// Hands frames to the port, and takes note of what has ended.
    pub(super) fn send(&mut self) -> Result<(), MxError> {
        let Self { engine, port, asker, now, .. } = self;
        let now = *now;
        let write =
            &mut |out: &mut [u8]| asker.transmit(now, out).or_else(|| engine.transmit(now, out));
        match port.transmit(write) {
            Ok(Transmitted::Drained) => self.blocked = None,
            Ok(Transmitted::Full(room)) => self.blocked = Some(room),
            Err(error) => return Err(self.breaks(error)),
        }
        while let Some(event) = self.engine.poll_event() {
            self.note(event);
        }
        let role = self.sleeper();
        // Who closes the endpoint waits for no request.
        let is_closing = role == LEADER && self.driven_for.is_none();
        if (self.blocked.is_some() || is_closing) && self.asleep[role].is_some() {
            self.sources.ring(role);
        }
        self.hand_over_timers();
        Ok(())
    }

    /// Who sleeps on the port, if anybody does.
    fn sleeper(&self) -> usize {
        if self.drivers > 0 { LEADER } else { PROGRESS }
    }

    /// Wakes who sleeps on the port and would miss what is due, so that it sets a timer.
    pub(super) fn hand_over_timers(&self) {
        let role = self.sleeper();
        if let (Some(until), Some(due)) = (self.asleep[role], self.engine.deadline())
            && due < until
            && !self.is_watched(role, due)
        {
            self.sources.ring(role);
        }
    }

    fn note(&mut self, event: Event<R>) {
        let completed = match event {
            Event::Sent(send, status) => {
                Completed { request: Request::Send(send), status, sink: None }
            }
            Event::Received(receive, status, sink) => {
                Completed { request: Request::Receive(receive), status, sink: Some(sink) }
            }
            Event::Connected(peer, code) => {
                let label = self.connecting.remove(&peer).unwrap_or_default();
                let status = label.status(peer, code);
                Completed { request: Request::Connect(peer), status, sink: None }
            }
            // Its requests have ended, and say why.
            Event::Lost(..) => return,
        };
        // Another thread may have received what the driver sleeps for.
        let is_for_driver = self.driven_for.is_some_and(|want| want.fits(&completed));
        if is_for_driver && self.asleep[LEADER].is_some() {
            self.sources.ring(LEADER);
        }
        let wanted = |sleeper: &&Sleeper| sleeper.want.fits(&completed);
        if let Some(sleeper) = self.sleepers.iter().find(wanted) {
            sleeper.signal.notify_one();
        }
        self.ended.add(completed);
        if self.rings {
            self.ring_bells();
        }
    }

    fn ring_bells(&mut self) {
        self.rings = false;
        self.bells.iter().for_each(|bell| bell.ring());
    }

    /// An error if the port does not work any more.
    pub(super) fn check(&self) -> Result<(), MxError> {
        self.broken.as_ref().map_or(Ok(()), |reason| Err(MxError::Broken(reason.clone())))
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// A broken port is an error for everybody who waits.
    pub(super) fn breaks(&mut self, error: PortError) -> MxError {
        let error = MxError::Port(error);
        self.fails(&error);
        error
    }

    /// From now on every request is refused.
    pub(super) fn fails(&mut self, error: &MxError) {
        self.broken.get_or_insert_with(|| error.to_string());
        for sleeper in &self.sleepers {
            sleeper.signal.notify_one();
        }
        self.sources.ring(LEADER);
        self.sources.ring(PROGRESS);
        self.ring_bells();
    }
}
