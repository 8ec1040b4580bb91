//! Drives one workload over one port.
//!
//! A single thread: ask the workload, do what it says, tell it what came of it. Nothing in the loop
//! allocates, except where a backlog or the number of peers grows. `now` is read once per turn,
//! right after the read, the write or the wake-up that the event reports, so no work of the agent's
//! comes between arrival and timestamp. Nothing else reads the clock unless it must: in a guest it
//! is a system call, and 256 ns of virtual time.

use super::clock::{Clock, busy_polled, cpu_ns};
use super::control::{Command, Control};
use super::poller::{Events, Poller, Ready};
use super::port::{Arrival, Port, explain};
use super::worker::Worker;
use base::time::{Duration, Instant};
use bench::polling::Polling;
use std::io;

use workload::{Action, ConnectionId, Counter, Now, Recorder, Window, Workload, WorkloadEvent};

const STDIN: u64 = u64::MAX;
/// Larger than any datagram, and than what a stream usually has at once.
const BUFFER_BYTES: usize = 128 * 1024;

/// By how much a count that only grows has grown in the window, as CPU time does. The marks are set
/// in the first turn after the moment they stand for; until that turn the agent slept, which uses
/// none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    read: fn() -> u64,
    start: Option<u64>,
    end: Option<u64>,
}

impl Meter {
    pub(super) fn new(read: fn() -> u64) -> Self {
        Self { read, start: None, end: None }
    }

    pub(super) fn observe(&mut self, at: Instant, window: Window) {
        if self.start.is_none() && at >= window.start {
            self.start = Some((self.read)());
        }
        if self.end.is_none() && at >= window.end {
            self.end = Some((self.read)());
        }
    }

    pub(super) fn grown(self) -> u64 {
        let end = self.end.unwrap_or_else(self.read);
        self.start.map_or(0, |start| end.saturating_sub(start))
    }
}

enum Woken {
    Arrival(Arrival),
    Time,
    Stop,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RunTotals {
    pub(super) window_ns: u64,
    pub(super) cpu_ns: u64,
    /// How often the peer's host refused a datagram.
    pub(super) refused: u64,
    /// Packets that came in by busy polling of this host's programs, if they poll.
    pub(super) polled: Option<u64>,
}

pub(super) struct Driver {
    port: Box<dyn Port>,
    poller: Poller,
    events: Events,
    /// Where in `events` the driver is, and how often it has read from that socket.
    index: usize,
    reads: u32,
    clock: Clock,
    worker: Worker,
    spin: bool,
    /// A server listens to its parent while it serves. The window is relative to *go*.
    control: Option<(Control, Window)>,
    cpu: Meter,
    polling: Polling,
    polled: Meter,
    /// The index of the socket that was read last without readiness; below the number of sockets.
    read_last: u64,
}

impl Driver {
    pub(super) fn new(
        port: Box<dyn Port>,
        poller: Poller,
        clock: Clock,
        worker: Worker,
        (spin, polling): (bool, Polling),
    ) -> Self {
        Self {
            port,
            poller,
            events: Events::new(),
            index: 0,
            reads: 0,
            clock,
            worker,
            spin,
            control: None,
            cpu: Meter::new(cpu_ns),
            polling,
            polled: Meter::new(busy_polled),
            read_last: 0,
        }
    }

    /// Makes this a server's driver: `go` opens the window, `stop` or the end of the input end the
    /// run.
    pub(super) fn obey(&mut self, control: Control, window: Window) -> Result<(), String> {
        self.poller.add(io::stdin(), STDIN).map_err(|error| {
            format!("watch standard input: {error}; a server needs a pipe or a terminal there")
        })?;
        self.control = Some((control, window));
        Ok(())
    }

    pub(super) fn run(
        &mut self,
        workload: &mut dyn Workload,
        recorder: &mut Recorder,
    ) -> Result<RunTotals, String> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut event = WorkloadEvent::Start;
        let mut now = Now { at: Instant::ZERO, wall_ns: 0 };
        let mut waited_since = None;
        loop {
            if !matches!(event, WorkloadEvent::Sent { .. }) || workload.needs_time_of_sent() {
                now = self.clock.now();
            }
            if let Some((since, longest)) = waited_since.take().zip(self.polling.longest()) {
                let polled = now.at.since(since).min(longest).as_nanos();
                recorder.count(now.at, Counter::PollingNanos, polled);
            }
            self.observe(now.at, recorder.window());
            event = match workload.next(now, event, recorder) {
                Action::Send { connection, bytes } => {
                    let sent = self.port.send(&self.poller, connection, bytes);
                    let backlog = sent.map_err(|error| self.failed("send to", &error))?;
                    WorkloadEvent::Sent { connection, backlog }
                }
                Action::SendBatch { connection, bytes, datagram_bytes } => {
                    let sent = self.port.send_batch(connection, bytes, datagram_bytes);
                    sent.map_err(|error| self.failed("send to", &error))?;
                    WorkloadEvent::Sent { connection, backlog: 0 }
                }
                Action::Compute(work) => {
                    self.worker.work(work)?;
                    WorkloadEvent::Computed
                }
                Action::Wait { until } => {
                    waited_since = Some(now.at);
                    match self.wait(now.at, until, &mut buffer, recorder)? {
                        Woken::Stop => break,
                        woken => event_of(&woken, &buffer),
                    }
                }
                Action::Done => break,
                Action::Fail(why) => return Err(format!("{}: {why}", self.port.address())),
            };
        }
        Ok(self.totals(recorder.window()))
    }

    fn totals(&mut self, window: Window) -> RunTotals {
        let at = self.clock.at();
        self.observe(at, window);
        RunTotals {
            window_ns: at.min(window.end).since(window.start).as_nanos(),
            cpu_ns: self.cpu.grown(),
            refused: self.port.refused(),
            polled: (!self.polling.is_epoll()).then(|| self.polled.grown()),
        }
    }

    fn observe(&mut self, at: Instant, window: Window) {
        self.cpu.observe(at, window);
        if !self.polling.is_epoll() {
            self.polled.observe(at, window);
        }
    }

    fn failed(&self, operation: &str, error: &io::Error) -> String {
        explain(operation, self.port.address(), error)
    }

    /// Waits for something that concerns the workload, which decided to at `now`.
    fn wait(
        &mut self,
        mut now: Instant,
        until: Option<Instant>,
        buffer: &mut [u8],
        recorder: &mut Recorder,
    ) -> Result<Woken, String> {
        let mut polled = false;
        loop {
            if let Some(woken) = self.next_ready(buffer, recorder)? {
                return Ok(woken);
            }
            if let Some(until) = until
                && polled
            {
                now = self.clock.at();
                if now >= until {
                    return Ok(Woken::Time);
                }
            }
            if let Some(poll) = self.polling.of_socket() {
                let end = self.clock.at() + poll.lasts;
                let end = until.map_or(end, |until| until.min(end));
                let found = self.read_busily(end, buffer)?;
                if let Some(arrival) = found {
                    return Ok(Woken::Arrival(arrival));
                }
                now = self.clock.at();
            }
            let left = until.map(|until| until.since(now));
            let timeout = if self.spin { Some(Duration::ZERO) } else { left };
            self.index = 0;
            let waited = self.poller.wait(&mut self.events, timeout);
            waited.map_err(|error| format!("wait for events: {error}"))?;
            polled = true;
        }
    }

    /// Reads from all sockets in turn, which has the kernel poll, until one of them has something
    /// or the time for that is over.
    fn read_busily(&mut self, end: Instant, buffer: &mut [u8]) -> Result<Option<Arrival>, String> {
        loop {
            let sockets = self.port.sockets();
            for _ in 0..sockets {
                // Each in its turn: none may keep the others from being read.
                self.read_last = (self.read_last + 1) % sockets;
                let ready = Ready { token: self.read_last, writable: false, readable: true };
                let read = self.port.receive(&self.poller, ready, buffer);
                let arrival = read.map_err(|error| self.failed("receive from", &error))?;
                if arrival != Arrival::Nothing {
                    return Ok(Some(arrival));
                }
            }
            if self.clock.at() >= end {
                return Ok(None);
            }
        }
    }

    /// Goes on through the sockets that the last wait reported.
    fn next_ready(
        &mut self,
        buffer: &mut [u8],
        recorder: &mut Recorder,
    ) -> Result<Option<Woken>, String> {
        while let Some(ready) = self.events.get(self.index) {
            if ready.token == STDIN {
                self.index += 1;
                if self.take_commands(recorder)? {
                    return Ok(Some(Woken::Stop));
                }
                continue;
            }
            let read = self.port.receive(&self.poller, ready, buffer);
            let arrival = read.map_err(|error| self.failed("receive from", &error))?;
            self.reads += 1;
            if arrival == Arrival::Nothing || self.reads >= self.port.reads_per_wakeup() {
                self.index += 1;
                self.reads = 0;
            }
            if arrival != Arrival::Nothing {
                return Ok(Some(Woken::Arrival(arrival)));
            }
        }
        Ok(None)
    }

    /// Does what the parent said; true to stop.
    fn take_commands(&mut self, recorder: &mut Recorder) -> Result<bool, String> {
        let Some((control, window)) = &mut self.control else {
            return Ok(false);
        };
        let mut command = control.poll().map_err(|error| error.to_string())?;
        while let Some(given) = command {
            if given != Command::Go {
                return Ok(true);
            }
            let go = self.clock.at().since(Instant::ZERO);
            recorder.set_window(Window { start: window.start + go, end: window.end + go });
            command = control.take().map_err(|error| error.to_string())?;
        }
        Ok(false)
    }
}

fn event_of<'buffer>(woken: &Woken, buffer: &'buffer [u8]) -> WorkloadEvent<'buffer> {
    let received = |connection: ConnectionId, length: usize| WorkloadEvent::Received {
        connection,
        bytes: &buffer[..length],
    };
    match *woken {
        Woken::Arrival(Arrival::Bytes(connection, length)) => received(connection, length),
        Woken::Arrival(Arrival::Drained(connection)) => WorkloadEvent::Drained { connection },
        Woken::Arrival(Arrival::Closed(connection)) => WorkloadEvent::Closed { connection },
        Woken::Arrival(Arrival::Nothing) | Woken::Time | Woken::Stop => WorkloadEvent::Woke,
    }
}
