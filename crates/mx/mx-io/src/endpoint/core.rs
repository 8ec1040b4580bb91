//! What the lock of an endpoint guards: engine, port, completions, leadership.

use std::sync::Arc;

use base::time::Instant;
use mx::buffers::{Sink, Source};
use mx::endpoint::{Endpoint as Engine, Read};
use mx::ids::PeerId;
use mx::outgoing::Outgoing;
use mx::status::Event;
use mx::wire::RUN_HEAD;
use rustc_hash::FxHashMap;

use super::completions::CompletionQueue;
use super::error::MxError;
use super::event_fd::EventFd;
use super::leadership::Leadership;
use super::request::{Completed, Label, RequestId};
use super::sources::Sources;
use crate::discovery::{self, Asker};
use crate::port::{Arrivals, Frames, NicId, Port, PortError, Reference, Room, Transmitted};
use sys::clock;

/// Frames that are taken at a time, as a driver does (NAPI).
const BUDGET: usize = 64;
/// One who looks again and again does what is due every so many looks, which is about once in a
/// microsecond.
const LOOKS: u32 = 16;
/// Limit of rounds of [`Core::advance`], and of batches after which what is due is done although
/// there are more, in case frames arrive faster than they are processed.
const ROUNDS: u32 = 64;

pub(super) struct Core<S, R> {
    /// Before the engine, so that it is dropped first: other processes may know from it where
    /// messages of the engine lie.
    pub(super) port: Box<dyn Port>,
    pub(super) engine: Engine<S, R>,
    /// Who looks for hosts, and answers those who do.
    pub(super) asker: Asker,
    pub(super) ended: CompletionQueue<R>,
    pub(super) connecting: FxHashMap<PeerId, Label>,
    pub(super) leadership: Leadership,
    /// How often [`Endpoint::wakeup`](super::Endpoint::wakeup) was called.
    pub(super) wakeups: u64,
    /// Descriptors that become readable when a request has ended.
    pub(super) event_fds: Vec<Arc<EventFd>>,
    /// A thread sleeps on them: the next completion signals them.
    pub(super) signals_next: bool,
    /// What the port waits for before it takes more frames.
    pub(super) blocked: Option<Room>,
    /// How often [`look`](Self::look) was called.
    looks: u32,
    /// Batches since all frames were taken that had come.
    behind: u32,
    pub(super) stopping: bool,
    /// The time, as of the latest look at the clock: each costs as much as a small message.
    now: Instant,
    broken: Option<String>,
}

impl<S: Source, R: Sink> Core<S, R> {
    pub(super) fn new(engine: Engine<S, R>, port: Box<dyn Port>, sources: Arc<Sources>) -> Self {
        let asker = Asker::new(engine.address(), Some(discovery::host_name()));
        Self {
            port,
            engine,
            asker,
            ended: CompletionQueue::default(),
            connecting: FxHashMap::default(),
            leadership: Leadership::new(sources),
            wakeups: 0,
            event_fds: Vec::new(),
            signals_next: false,
            blocked: None,
            looks: 0,
            behind: 0,
            stopping: false,
            now: Instant::ZERO,
            broken: None,
        }
    }

    pub(super) fn tick(&mut self) -> Instant {
        self.now = clock::now();
        self.now
    }

    /// The time as of the latest look at the clock, which was a moment ago.
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// Receives what has come, does what is due, sends what there is to send; whether frames came.
    /// Callers have other work to do, so it returns although more may come.
    pub(super) fn advance(&mut self) -> Result<bool, MxError> {
        let mut any = false;
        for _ in 0..ROUNDS {
            let now = self.tick();
            any |= self.receive(Some(now))?;
            self.send()?;
            // A port that is received from does not signal any more, until it is armed. Those who
            // sleep on it rely on the signal.
            if self.leadership.is_awake() || !self.arm()? {
                return Ok(any);
            }
        }
        self.leadership.wake_sleepers();
        Ok(true)
    }

    /// Processes what has arrived so far. To be called before a peer is probed: frames that arrived
    /// before the probe do not show that the peer is still alive.
    pub(super) fn catch_up(&mut self) -> Result<(), MxError> {
        for _ in 0..ROUNDS {
            if !self.advance()? {
                break;
            }
        }
        Ok(())
    }

    /// Advances if a frame has come, and now and then if none has. This is for one who looks again
    /// and again: the clock costs more than a look into the port.
    pub(super) fn look(&mut self) -> Result<bool, MxError> {
        let any = self.look_for_frames()?;
        // One at a time: the rest may be acknowledged until the next look.
        if self.engine.end_lent() {
            self.note_events();
        }
        Ok(any)
    }

    fn look_for_frames(&mut self) -> Result<bool, MxError> {
        self.looks = self.looks.wrapping_add(1);
        let is_due = self.looks.is_multiple_of(LOOKS);
        if is_due || !self.leadership.is_awake() || self.blocked.is_some() {
            return self.advance();
        }
        let any = self.receive(None)?;
        if any {
            self.send_if_any()?;
        }
        Ok(any)
    }

    /// Ends sends that only wait for an acknowledgement, before the program sleeps; whether there
    /// were any.
    pub(super) fn end_lent(&mut self) -> bool {
        let mut any = false;
        while self.engine.end_lent() {
            any = true;
        }
        self.note_events();
        any
    }

    pub(super) fn send_asked(&mut self) -> Result<(), MxError> {
        if self.engine.lacks_credit() {
            // A program that sends and waits for nothing has not heard of what peers permit.
            self.advance()?;
        }
        self.send_if_any()
    }

    /// As [`send`](Self::send), but leaves the port alone if the engine has nothing for it: what
    /// the program waits for is not to wait for the port. An acknowledgement that is not due yet
    /// goes with what the program sends next.
    pub(super) fn send_if_any(&mut self) -> Result<(), MxError> {
        if !self.engine.is_quiet(self.now) {
            return self.send();
        }
        self.note_events();
        self.hand_over_timer();
        Ok(())
    }

    /// Receives what has come. Without `now` the clock is looked at when there is something.
    fn receive(&mut self, mut now: Option<Instant>) -> Result<bool, MxError> {
        let knows_time = now.is_some();
        let Self { engine, port, asker, .. } = self;
        let take = &mut EngineFrames { engine, asker, now: &mut now };
        let frames = port.receive(BUDGET, take).map_err(|error| self.breaks(error))?;
        self.now = now.unwrap_or(self.now);
        let has_read = self.read();
        if now.is_none() {
            return Ok(has_read);
        }
        let now = self.now;
        let is_changed = self.note_bulk_paths();
        // What seems to be missing may only not have been looked at: this thread may have been
        // away.
        let is_all = frames < BUDGET;
        self.behind = if is_all || self.behind == ROUNDS { 0 } else { self.behind + 1 };
        if self.behind == 0 && (knows_time || self.engine.is_overdue(now)) {
            self.engine.handle_timeout(now);
        }
        Ok(frames > 0 || is_changed || has_read)
    }

    /// Reads the next piece of a message that is to be read where it lies; whether there is one.
    fn read(&mut self) -> bool {
        let Self { engine, port, .. } = self;
        let Some(Read { from, reference, place }) = engine.next_read() else { return false };
        let is_read = port.read(from, reference, place);
        let now = self.tick();
        self.engine.handle_read(now, is_read);
        true
    }

    /// Tells the engine of paths for bulk frames; whether there was something to tell.
    fn note_bulk_paths(&mut self) -> bool {
        let changes = self.port.bulk_changes();
        for (peer, path) in &changes {
            self.engine.set_bulk_path(self.now, *peer, *path);
        }
        !changes.is_empty()
    }

    /// Asks the port for a signal; true if there is something already.
    pub(super) fn arm(&mut self) -> Result<bool, MxError> {
        self.port.arm().map_err(|error| self.breaks(error))
    }

    /// Hands frames to the port, and takes note of what has ended.
    pub(super) fn send(&mut self) -> Result<(), MxError> {
        loop {
            let Self { engine, port, asker, now, .. } = self;
            match port.transmit(&mut DueFrames { engine, asker, now: *now }) {
                Ok(Transmitted::Drained) => self.blocked = None,
                Ok(Transmitted::Full(room)) => self.blocked = Some(room),
                Err(error) => return Err(self.breaks(error)),
            }
            if !self.note_bulk_paths() {
                break;
            }
        }
        self.note_events();
        self.leadership.sent(self.blocked.is_some());
        self.hand_over_timer();
        Ok(())
    }

    fn note_events(&mut self) {
        while let Some(peer) = self.engine.poll_lost_path() {
            self.port.close_bulk_path(peer);
        }
        while let Some(event) = self.engine.poll_event() {
            self.on_event(event);
        }
    }

    /// Wakes who sleeps on the port and would miss what is due next.
    pub(super) fn hand_over_timer(&mut self) {
        self.leadership.hand_over_timer(|| self.engine.deadline());
    }

    fn on_event(&mut self, event: Event<R>) {
        let completed = match event {
            Event::Sent(send, status) => {
                Completed { request: RequestId::Send(send), status, sink: None }
            }
            Event::Received(receive, status, sink) => {
                Completed { request: RequestId::Receive(receive), status, sink: Some(sink) }
            }
            Event::Connected(peer, result) => {
                let label = self.connecting.remove(&peer).unwrap_or_default();
                let status = label.status(peer, result);
                Completed { request: RequestId::Connect(peer), status, sink: None }
            }
            // Its requests have ended, and say why.
            Event::Lost(..) => return,
        };
        self.leadership.completed(&completed);
        self.ended.add(completed);
        if self.signals_next {
            self.signal();
        }
    }

    fn signal(&mut self) {
        self.signals_next = false;
        self.event_fds.iter().for_each(|event_fd| event_fd.ring());
    }

    /// An error if the port does not work any more.
    pub(super) fn check(&self) -> Result<(), MxError> {
        self.broken.as_ref().map_or(Ok(()), |reason| Err(MxError::Broken(reason.clone())))
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// A broken port is an error for all who wait.
    pub(super) fn breaks(&mut self, error: PortError) -> MxError {
        let error = MxError::Port(error);
        self.fails(&error);
        error
    }

    pub(super) fn fails(&mut self, error: &MxError) {
        self.broken.get_or_insert_with(|| error.to_string());
        self.leadership.wake_all();
        self.leadership.wake_progress();
        self.signal();
    }
}

/// The frames that are due: questions about hosts first.
struct DueFrames<'a, S, R> {
    engine: &'a mut Engine<S, R>,
    asker: &'a mut Asker,
    now: Instant,
}

impl<S: Source, R: Sink> Frames for DueFrames<'_, S, R> {
    fn next(&mut self, room: &mut [u8]) -> Option<Outgoing> {
        let Self { engine, asker, now } = self;
        asker.transmit(*now, room).or_else(|| engine.transmit(*now, room))
    }

    fn data(&self) -> &[u8] {
        self.engine.data()
    }
}

/// Takes what has come, at a time that is looked at if something has.
struct EngineFrames<'a, S, R> {
    engine: &'a mut Engine<S, R>,
    asker: &'a mut Asker,
    now: &'a mut Option<Instant>,
}

impl<S: Source, R: Sink> Arrivals for EngineFrames<'_, S, R> {
    fn take(&mut self, from: NicId, frame: &[u8]) {
        let now = *self.now.get_or_insert_with(clock::now);
        if !self.asker.handle_frame(now, from, frame) {
            self.engine.handle_frame(now, from, frame);
        }
    }

    fn take_reference(&mut self, from: NicId, frame: &[u8], reference: Reference) {
        let now = *self.now.get_or_insert_with(clock::now);
        self.engine.handle_reference(now, from, frame, reference);
    }

    fn place(
        &mut self,
        from: NicId,
        head: &[u8; RUN_HEAD],
        skip: usize,
        most: usize,
    ) -> Option<&mut [u8]> {
        self.engine.place(from, head, skip, most)
    }

    fn placed(&mut self, from: NicId, head: &[u8; RUN_HEAD], length: usize) {
        let now = *self.now.get_or_insert_with(clock::now);
        self.engine.handle_placed(now, from, head, length);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{BorrowedFd, OwnedFd};

    use base::time::Duration;
    use bytes::Bytes;
    use mx::config::Config;

    use super::*;
    use crate::endpoint::completions::Filter;
    use crate::endpoint::sources::Role;
    use crate::port::{Identity, PortCounters, TakeFrame, WriteFrame};

    /// A port to which more frames come than a thread can take.
    struct Flood(OwnedFd);

    impl Port for Flood {
        fn identity(&self) -> Identity {
            Identity { nic: NicId([2; 6]), endpoint: 1, mtu: 1500, host_bytes: 6 }
        }

        fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError> {
            while write.next(&mut [0; 1500]).is_some() {}
            Ok(Transmitted::Drained)
        }

        fn receive(&mut self, most: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
            (0..most).for_each(|_| take.take(NicId([6; 6]), &[0; 36]));
            Ok(most)
        }

        fn arm(&mut self) -> Result<bool, PortError> {
            Ok(true)
        }

        fn readiness(&self) -> BorrowedFd<'_> {
            std::os::fd::AsFd::as_fd(&self.0)
        }

        fn clear(&mut self) -> Result<(), PortError> {
            Ok(())
        }

        fn counters(&mut self) -> PortCounters {
            PortCounters::default()
        }
    }

    fn flooded() -> Core<Bytes, Vec<u8>> {
        let port = Flood(std::fs::File::open("/dev/null").unwrap().into());
        let Identity { nic, endpoint, .. } = port.identity();
        let address = mx::address::Address { nic, endpoint };
        let engine = Engine::new(Config::default(), address, 1).unwrap();
        let sources = Arc::new(Sources::of(&port).unwrap());
        Core::new(engine, Box::new(port), sources)
    }

    #[test]
    fn a_flood_does_not_keep_the_caller_from_its_other_work() {
        let mut core = flooded();
        core.leadership.set_sleep(Role::Progress, Some(Instant::from_nanos(u64::MAX)));
        assert!(core.advance().unwrap());
        // The port is not armed: a thread that sleeps on it has to look.
        assert!(core.leadership.is_awake());
    }

    #[test]
    fn a_flood_does_not_keep_timers_from_running() {
        let mut core = flooded();
        let to = mx::address::Address { nic: NicId([4; 6]), endpoint: 1 };
        let now = core.tick();
        core.engine.connect(now, to, 0, Duration::ZERO).unwrap();
        let ended = Filter::Any(mx::matching::Match::ANY);
        for _ in 0..=2 * ROUNDS {
            if core.ended.has(ended) {
                return;
            }
            core.advance().unwrap();
        }
        panic!("the time-out of a request to connect is not looked at");
    }
}
