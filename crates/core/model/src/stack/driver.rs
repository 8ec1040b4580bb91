//! Drives one workload: keeps its side of the conversation, the recorder, and the bytes of a call.
//!
//! The owner of a driver carries out what the workload [asks for](Demand) and
//! [reports](Reported) what came of it, which the workload is handed at the next call of
//! [`next`](WorkloadDriver::next).

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem::replace;

use base::time::{Duration, Instant};
use workload::{
    Action, ConnectionId, Now, Record, Recorder, Window, Workload, WorkloadEvent, WorkloadSpec,
};

/// A [`WorkloadEvent`] without its bytes, which the driver keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// The first one.
    Start,
    /// What it sent was taken, but for so many bytes of the connection.
    Sent(ConnectionId, usize),
    /// So many bytes were [given](WorkloadDriver::received).
    Received(ConnectionId, usize),
    /// The connection has no backlog any more.
    Drained(ConnectionId),
    /// The moment that it waited for has come.
    Woke,
    /// It has computed.
    Computed,
}

/// What a workload asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// To send [`WorkloadDriver::outgoing`].
    Send {
        /// The connection that it goes out on.
        connection: ConnectionId,
        /// Bytes of it, however many of them are kept.
        length: usize,
        /// Bytes of each datagram, if these are several.
        each: Option<usize>,
    },
    /// To keep a core busy for so long.
    Compute(Duration),
    /// Something to be reported, [`Reported::Woke`] at this moment if nothing else.
    Report(Option<Instant>),
    /// Nothing now: what it asked for before goes on, or it is over.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
enum DriverState {
    Reported(Reported),
    Waits(Option<Instant>),
    Busy,
    Over,
}

/// A workload and its recorder.
pub struct WorkloadDriver {
    workload: Box<dyn Workload>,
    recorder: Recorder,
    state: DriverState,
    failure: Option<String>,
    now: Now,
    readings: u32,
    /// When it begins, from which its own clock counts.
    begins: Instant,
    /// How many bytes of what is sent are of interest.
    keeps: usize,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl WorkloadDriver {
    /// A driver before the start. Only the first `keeps` bytes of what is sent at a time are
    /// wanted. The workload's clocks, and the window, count from when it begins: that is when the
    /// simulation does, unless it is [put off](Self::beginning_at).
    pub fn new(workload: Box<dyn Workload>, window: Window, keeps: usize, series: bool) -> Self {
        Self {
            workload,
            recorder: Recorder::new(window, series),
            state: DriverState::Reported(Reported::Start),
            failure: None,
            now: Now::default(),
            readings: 0,
            begins: Instant::ZERO,
            keeps,
            outgoing: Vec::new(),
            incoming: Vec::new(),
        }
    }

    /// The same, which begins at a moment of the simulation.
    #[must_use]
    pub const fn beginning_at(mut self, begins: Instant) -> Self {
        self.begins = begins;
        self
    }

    /// A moment of the simulation by the clock of the workload.
    pub const fn own_clock(&self, at: Instant) -> Instant {
        Instant::from_nanos(at.since(self.begins).as_nanos())
    }

    /// What the workload has measured.
    pub const fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// What it has measured in its window, which is over, with so much CPU time of its own; the
    /// recorder is empty then.
    pub fn record(&mut self, spec: &WorkloadSpec, cpu_ns: u64) -> Record {
        let window = self.recorder.window();
        let recorder = replace(&mut self.recorder, Recorder::new(window, false));
        recorder.into_record(spec, window.end.since(window.start).as_nanos(), cpu_ns)
    }

    /// For what its driver counts itself.
    pub const fn recorder_mut(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Whether it waits for a report.
    pub const fn waits(&self) -> bool {
        matches!(self.state, DriverState::Waits(_))
    }

    /// Until when it waits at most.
    pub const fn until(&self) -> Option<Instant> {
        match self.state {
            DriverState::Waits(until) => until,
            DriverState::Reported(Reported::Start) => Some(self.begins),
            _ => None,
        }
    }

    /// How often an agent looks at its clocks for the last request.
    pub const fn readings(&self) -> u32 {
        self.readings
    }

    /// The bytes of the last [`Demand::Send`].
    pub fn outgoing(&self) -> &[u8] {
        &self.outgoing
    }

    /// Reports what came of the last request, or what happened while it waited.
    pub fn report(&mut self, report: Reported) {
        if !matches!(self.state, DriverState::Over) {
            self.state = DriverState::Reported(report);
        }
    }

    /// Reports that `length` bytes came, which `read` writes into a place of that length; what was
    /// there before is in it, or zeros.
    pub fn received(
        &mut self,
        connection: ConnectionId,
        length: usize,
        read: impl FnOnce(&mut [u8]),
    ) {
        if self.incoming.len() < length {
            self.incoming.resize(length, 0);
        }
        read(&mut self.incoming[..length]);
        self.report(Reported::Received(connection, length));
    }

    /// Hands the workload the last report, and gives what it asks for. A moment that it waited for
    /// is for the caller to report.
    pub fn next(&mut self, at: Instant) -> Demand {
        if at < self.begins {
            return Demand::Report(Some(self.begins));
        }
        let report = match self.state {
            DriverState::Reported(report) => report,
            DriverState::Waits(until) => return Demand::Report(until),
            DriverState::Busy | DriverState::Over => return Demand::Nothing,
        };
        self.readings = 0;
        if !matches!(report, Reported::Sent(..)) || self.workload.needs_time_of_sent() {
            let reads_wall_clock = self.workload.reads_wall_clock();
            self.readings = if reads_wall_clock { 2 } else { 1 };
            let at = self.own_clock(at);
            self.now = Now { at, wall_ns: if reads_wall_clock { at.as_nanos() } else { 0 } };
        }
        let event = match report {
            Reported::Start => WorkloadEvent::Start,
            Reported::Sent(connection, backlog) => WorkloadEvent::Sent { connection, backlog },
            Reported::Received(connection, length) => {
                WorkloadEvent::Received { connection, bytes: &self.incoming[..length] }
            }
            Reported::Drained(connection) => WorkloadEvent::Drained { connection },
            Reported::Woke => WorkloadEvent::Woke,
            Reported::Computed => WorkloadEvent::Computed,
        };
        let keeps = self.keeps;
        let mut keep = |bytes: &[u8]| {
            self.outgoing.clear();
            self.outgoing.extend_from_slice(&bytes[..bytes.len().min(keeps)]);
            bytes.len()
        };
        let (state, request) = match self.workload.next(self.now, event, &mut self.recorder) {
            Action::Send { connection, bytes } => {
                let length = keep(bytes);
                (DriverState::Busy, Demand::Send { connection, length, each: None })
            }
            Action::SendBatch { connection, bytes, datagram_bytes } => {
                let length = keep(bytes);
                (DriverState::Busy, Demand::Send { connection, length, each: Some(datagram_bytes) })
            }
            Action::Compute(lasts) => (DriverState::Busy, Demand::Compute(lasts)),
            Action::Wait { until } => {
                let until = until.map(|until| until + self.begins.since(Instant::ZERO));
                (DriverState::Waits(until), Demand::Report(until))
            }
            Action::Done => (DriverState::Over, Demand::Nothing),
            Action::Fail(why) => {
                self.failure = Some(why.to_owned());
                (DriverState::Over, Demand::Nothing)
            }
        };
        self.state = state;
        request
    }
}
