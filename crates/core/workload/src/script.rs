//! Plays a workload's driver in virtual time, one event at a time, for tests.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{
    Action, ConnectionId, Counter, Instant, Now, Recorder, Timing, Window, Workload, WorkloadEvent,
};
use base::distribution::Distribution;

/// An [`Action`] that owns its bytes; times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Did {
    Send(ConnectionId, Vec<u8>),
    Batch(ConnectionId, Vec<u8>, usize),
    Compute(u64),
    Wait(Option<u64>),
    Done,
    Fail(String),
}

/// One workload, its recorder, and the hand-written driver.
pub(crate) struct Script<W> {
    workload: W,
    pub(crate) recorder: Recorder,
    /// The wall clock minus the monotonic one.
    pub(crate) wall_offset_ns: u64,
}

impl<W: Workload> Script<W> {
    /// A script whose window is `[0, end_ns)`.
    pub(crate) fn new(workload: W, end_ns: u64) -> Self {
        let window = Window { start: Instant::ZERO, end: Instant::from_nanos(end_ns) };
        Self { workload, recorder: Recorder::new(window, true), wall_offset_ns: 0 }
    }

    /// Passes one event and returns the action.
    pub(crate) fn handle(&mut self, at_ns: u64, event: WorkloadEvent<'_>) -> Did {
        let now = Now { at: Instant::from_nanos(at_ns), wall_ns: at_ns + self.wall_offset_ns };
        match self.workload.next(now, event, &mut self.recorder) {
            Action::Send { connection, bytes } => Did::Send(connection, bytes.to_vec()),
            Action::SendBatch { connection, bytes, datagram_bytes } => {
                Did::Batch(connection, bytes.to_vec(), datagram_bytes)
            }
            Action::Compute(work) => Did::Compute(work.as_nanos()),
            Action::Wait { until } => Did::Wait(until.map(Instant::as_nanos)),
            Action::Done => Did::Done,
            Action::Fail(why) => Did::Fail(why.to_owned()),
        }
    }

    pub(crate) fn start(&mut self) -> Did {
        self.handle(0, WorkloadEvent::Start)
    }

    pub(crate) fn sent(&mut self, at_ns: u64, connection: ConnectionId) -> Did {
        self.handle(at_ns, WorkloadEvent::Sent { connection, backlog: 0 })
    }

    pub(crate) fn received(&mut self, at_ns: u64, connection: ConnectionId, bytes: &[u8]) -> Did {
        self.handle(at_ns, WorkloadEvent::Received { connection, bytes })
    }

    pub(crate) fn woke(&mut self, at_ns: u64) -> Did {
        self.handle(at_ns, WorkloadEvent::Woke)
    }

    pub(crate) fn counter(&self, counter: Counter) -> u64 {
        self.recorder.counter(counter)
    }

    pub(crate) fn timing(&self, timing: Timing) -> Distribution {
        self.recorder.distribution(timing)
    }
}
