//! A host: its NIC, cores, protocols and processes.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use base::time::Instant;

use crate::cpu::{Busy, Core, Poll};
use crate::device::Device;
use crate::frame::Frame;
use crate::machine::Costs;
use crate::napi::{NapiInstance, NapiSettings, PollingSession};
use crate::stack::{Stack, StepAction};

/// What a poll is busy with.
#[derive(Debug)]
pub(super) enum Item {
    Received(Frame),
    Send { process: usize, number: u64, frame: Frame },
}

/// A process of a host, as its cores know it.
pub(super) struct ProcessState<A> {
    pub(super) action: Option<StepAction<A>>,
    /// The number under which the frame it is sending was written.
    pub(super) number: u64,
    /// Frames that were written, in order, and whether they may leave: a protocol whose kernel and
    /// whose process both send holds a lock.
    pub(super) order: VecDeque<(u64, Option<Frame>)>,
    pub(super) written: u64,
    /// Cache lines that it needs are on the core that received for it.
    pub(super) has_moved: bool,
    /// It sleeps in the kernel.
    pub(super) is_blocked: bool,
    /// The queue that its last packet came from.
    pub(super) queue: Option<usize>,
    /// It polls before it sleeps.
    pub(super) session: Option<PollingSession>,
    /// The packet that it has taken while it polled.
    pub(super) received: Option<Frame>,
    /// Something has come for it since it last had nothing to do.
    pub(super) has_events: bool,
}

impl<A> Default for ProcessState<A> {
    fn default() -> Self {
        Self {
            action: None,
            number: 0,
            order: VecDeque::new(),
            written: 0,
            has_moved: false,
            is_blocked: false,
            queue: None,
            session: None,
            received: None,
            has_events: false,
        }
    }
}

impl<A> ProcessState<A> {
    pub(super) fn write(&mut self) -> u64 {
        self.written += 1;
        self.order.push_back((self.written, None));
        self.written
    }
}

/// A host: its NIC, cores, protocols and processes.
pub struct Host<S: Stack, O> {
    /// Its protocols and processes.
    pub stack: S,
    /// The NIC, which has its counters.
    pub device: Device<O>,
    pub(super) costs: Costs,
    pub(super) cores: Vec<Core>,
    /// Those that processes are bound to, and that of a thread that polls.
    pub(super) homes: Vec<usize>,
    pub(super) states: Vec<ProcessState<S::StepAction>>,
    /// Polls that are going on, by queue.
    pub(super) polls: Vec<Option<Poll<Item>>>,
    /// How its kernel and its programs poll, and what is remembered of each queue.
    pub(super) napi: NapiSettings,
    pub(super) instances: Vec<NapiInstance>,
    /// The core of the last interrupt, where they take turns.
    pub(super) turn: usize,
    /// The core that polled last.
    pub(super) last_core: usize,
    /// Completed transmissions that no core has cleaned up, and the core that did so last.
    pub(super) transmitted: u32,
    pub(super) cleaned_on: Option<usize>,
    pub(super) nic_at: Option<Instant>,
    pub(super) timer_at: Option<Instant>,
    pub(super) room_at: Option<Instant>,
    /// Packets that its polls have taken.
    pub polled: u64,
}

impl<S: Stack, O> Host<S, O> {
    /// What its cores were busy with so far.
    pub fn busy(&self) -> Busy {
        self.cores.iter().fold(Busy::default(), |sum, core| sum + core.busy)
    }
}
