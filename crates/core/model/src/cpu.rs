//! The cores of a host: what runs, what waits, what was pre-empted.
//!
//! Three things run on a core, and each pre-empts what comes after it in this list: the handler of
//! an interrupt, a softirq, a process. A process that is inside the driver's transmit path, where
//! the kernel holds softirqs back, sends its frame first.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Add;

use base::time::{Duration, Instant};
use nic::processor::Activity;

use crate::device::Cause;
use crate::machine::Costs;

/// What a core is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Running {
    /// The handler of an interrupt.
    Handler(Cause),
    /// The softirq that polls a queue: one packet, or one frame that the kernel sends.
    Poll(usize),
    /// A process; whether it is inside the transmit path.
    Process(usize, bool),
}

impl Running {
    pub(crate) const fn activity(self) -> Activity {
        match self {
            Self::Handler(_) => Activity::Interrupt,
            Self::Poll(_) => Activity::Receive,
            Self::Process(..) => Activity::Work,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Core {
    /// What runs, and until when.
    pub(crate) running: Option<(Running, Instant)>,
    /// The moment since which it runs.
    pub(crate) begun: Instant,
    /// Tells the end of what runs from one that was planned before a pre-emption.
    pub(crate) number: u32,
    /// Interrupts that came while the core could not act on them, though it has paid for them.
    pub(crate) handled: VecDeque<Cause>,
    /// Queues to poll, in turn.
    pub(crate) softirqs: VecDeque<usize>,
    /// A process that was pre-empted, and the rest of its work.
    pub(crate) preempted: Option<(usize, Duration)>,
    /// The processes that are bound to it; the first one is asked first.
    pub(crate) processes: VecDeque<usize>,
    /// By how many nanoseconds softirqs have run longer than processes since these could run.
    pub(crate) debt: u64,
    /// Processes have their turn, though there are softirqs.
    pub(crate) yields: bool,
    /// What is left of the work of the process that runs when its turn is over.
    pub(crate) rest: Duration,
    /// Since when it has had nothing to do, and no process that polls.
    pub(crate) idle_since: Option<Instant>,
    /// Nanoseconds in handlers and softirqs, and in processes.
    pub(crate) busy: Busy,
}

impl Core {
    /// Whether it has been idle for so long that it sleeps: what wakes it then pays for that.
    pub(crate) fn is_asleep(&self, now: Instant, costs: &Costs) -> bool {
        self.idle_since.is_some_and(|since| now.since(since).as_nanos() as f64 >= costs.idle_after)
    }
}

/// Time that cores were busy, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Handlers of interrupts.
    pub interrupts: u64,
    /// Softirqs: packets received, and frames that the kernel sends by itself.
    pub softirqs: u64,
    /// Processes, system calls included.
    pub processes: u64,
}

impl Add for Busy {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            interrupts: self.interrupts + other.interrupts,
            softirqs: self.softirqs + other.softirqs,
            processes: self.processes + other.processes,
        }
    }
}

/// A poll that is going on.
#[derive(Debug)]
pub(crate) struct Poll<F> {
    pub(crate) item: Option<F>,
    /// It has taken no packet yet.
    pub(crate) is_first: bool,
    /// Its first packet moved cache lines to this core.
    pub(crate) has_moved: bool,
    /// The process that a packet was for will pay for that.
    pub(crate) is_charged: bool,
    /// It was begun by an interrupt, and is to re-arm.
    pub(crate) rearms: bool,
    /// Packets it may take before others have their turn.
    pub(crate) budget: u32,
    /// What it takes the thread that polls to wake up, in nanoseconds, until that is paid.
    pub(crate) wake_ns: f64,
}

/// How long softirqs run before `ksoftirqd` takes them over, which shares the core with processes
/// (`MAX_SOFTIRQ_TIME`, `kernel/softirq.c`).
pub(crate) const MAX_SOFTIRQ: Duration = Duration::from_millis(2);

/// Packets that a poll takes before others have their turn (`NAPI_POLL_WEIGHT`,
/// `include/linux/netdevice.h`).
pub(crate) const BUDGET: u32 = 64;

impl<F> Poll<F> {
    /// One that an interrupt begins.
    pub(crate) const fn new() -> Self {
        let (has_moved, is_charged) = (false, false);
        Self {
            item: None,
            is_first: true,
            has_moved,
            is_charged,
            rearms: true,
            budget: BUDGET,
            wake_ns: 0.0,
        }
    }
}

/// The cores of a host whose processes are bound to these.
pub(crate) fn cores(count: usize, bound_to: impl Iterator<Item = usize>) -> Vec<Core> {
    let idle = || Core { idle_since: Some(Instant::ZERO), ..Core::default() };
    let mut cores: Vec<Core> = (0..count).map(|_| idle()).collect();
    for (process, core) in bound_to.enumerate() {
        cores[core % count].processes.push_back(process);
    }
    cores
}
