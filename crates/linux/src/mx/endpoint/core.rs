//! What the threads of an endpoint share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Condvar};

use mx::buffers::{Sink, Source};
use mx::ids::PeerId;
use mx::status::{Code, Event, Status};
use nic::time::Instant;

use super::sources::Sources;
use super::{Completed, DRIVER, MxError, Request, WATCHER};
use crate::clock;
use crate::mx::discovery::{self, Asker};
use crate::mx::port::{Port, PortError, Room, Transmitted};

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
    /// Ended requests that nobody has asked for, in the order of their ends.
    finished: BTreeMap<u64, Completed<R>>,
    order: HashMap<Request, u64>,
    ended: u64,
    forgotten: HashSet<Request>,
    /// Threads that sleep until somebody has something for them.
    pub(super) sleepers: Vec<Sleeper>,
    /// Threads of the application that are receiving.
    pub(super) drivers: u32,
    /// When one last did.
    pub(super) driven_at: Instant,
    /// The progress thread has to be told when the last driver leaves.
    pub(super) wants_bell: bool,
    /// Until when a driver and the progress thread will sleep on the port, if they do.
    pub(super) asleep: [Option<Instant>; 2],
    /// How often all who wait were told to return.
    pub(super) wakeups: u64,
    /// What the port waits for before it takes more frames.
    pub(super) blocked: Option<Room>,
    pub(super) stopping: bool,
    /// The time, as of the latest look at the clock: each costs as much as a small message.
    now: Instant,
    broken: Option<String>,
}

/// What a thread sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// The end of this request.
    One(Request),
    /// The end of any request whose match information agrees with the first in all bits of the
    /// second.
    Any(u64, u64),
}

pub(super) struct Sleeper {
    pub(super) want: Want,
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
            finished: BTreeMap::new(),
            order: HashMap::new(),
            ended: 0,
            forgotten: HashSet::new(),
            sleepers: Vec::new(),
            drivers: 0,
            driven_at: Instant::ZERO,
            wants_bell: false,
            asleep: [None; 2],
            wakeups: 0,
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
            any |= self.receive()?;
            self.send()?;
            // A port that is received from does not signal any more, until it is armed. Those who
            // sleep on it rely on the signal.
            if self.asleep == [None; 2] || !self.arm()? {
                return Ok(any);
            }
        }
    }

    fn receive(&mut self) -> Result<bool, MxError> {
        let now = self.tick();
        let Self { engine, port, asker, .. } = self;
        let take = &mut |from, bytes: &[u8]| {
            if !asker.arrive(now, from, bytes) {
                engine.arrive(now, from, bytes);
            }
        };
        let frames = port.receive(BUDGET, take).map_err(|error| self.breaks(error))?;
        // What seems to be missing may only not have been looked at: this thread may have been
        // away.
        let is_all = frames < BUDGET;
        if is_all && self.engine.deadline().is_some_and(|deadline| deadline <= now) {
            self.engine.expire(now);
        }
        Ok(frames > 0)
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
        while let Some(event) = self.engine.event() {
            self.note(event);
        }
        // Whoever sleeps on the port may have to wake up sooner than it thinks.
        let role = if self.drivers > 0 { DRIVER } else { WATCHER };
        if let Some(until) = self.asleep[role]
            && (self.blocked.is_some() || self.engine.deadline().is_some_and(|due| due < until))
        {
            self.sources.ring(role);
        }
        Ok(())
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
                let status = connected(peer, code);
                Completed { request: Request::Connect(peer), status, sink: None }
            }
            // Its requests have ended, and say why.
            Event::Lost(..) => return,
        };
        let request = completed.request;
        if self.forgotten.remove(&request) {
            return;
        }
        let wanted = |sleeper: &&Sleeper| sleeper.want.fits(&completed);
        if let Some(sleeper) = self.sleepers.iter().find(wanted) {
            sleeper.signal.notify_one();
        }
        self.ended += 1;
        self.order.insert(request, self.ended);
        self.finished.insert(self.ended, completed);
    }

    /// A request that has ended and that somebody wants; it is told once.
    pub(super) fn take(&mut self, want: Want) -> Option<Completed<R>> {
        let ended = match want {
            Want::One(request) => *self.order.get(&request)?,
            Want::Any(..) => {
                let fits = |(_, completed): &(&u64, &Completed<R>)| want.fits(completed);
                *self.finished.iter().find(fits)?.0
            }
        };
        let completed = self.finished.remove(&ended)?;
        self.order.remove(&completed.request);
        Some(completed)
    }

    /// The oldest request that has ended, which goes on being there (`mx_ipeek`).
    pub(super) fn peek(&self) -> Option<Request> {
        self.finished.first_key_value().map(|(_, completed)| completed.request)
    }

    pub(super) fn forget(&mut self, request: Request) {
        if self.take(Want::One(request)).is_none() {
            self.forgotten.insert(request);
        }
    }

    /// Whether a request has ended that is wanted.
    pub(super) fn has(&self, want: Want) -> bool {
        match want {
            Want::One(request) => self.order.contains_key(&request),
            Want::Any(..) => self.finished.values().any(|completed| want.fits(completed)),
        }
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
        self.sources.ring(DRIVER);
        self.sources.ring(WATCHER);
    }
}

impl Want {
    fn fits<R>(&self, completed: &Completed<R>) -> bool {
        match self {
            Self::One(request) => *request == completed.request,
            Self::Any(match_info, mask) => (completed.status.match_info ^ match_info) & mask == 0,
        }
    }
}

fn connected(peer: PeerId, code: Code) -> Status {
    let peer = Some(peer);
    Status { code, peer, match_info: 0, length: 0, transferred: 0, context: 0 }
}
