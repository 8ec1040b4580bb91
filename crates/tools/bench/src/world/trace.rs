//! What happened at modelled hosts, one thing after the other.

use base::time::Instant;
use base::times::Times;
use model::watch::Watch;
use nic::observer::{Delivered, Interrupted, Observer};
use nic::processor::Activity;

/// A time in which a core was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreSpan {
    /// Number of the core.
    pub core: usize,
    /// What it did.
    pub activity: Activity,
    /// When it began.
    pub begun: Instant,
    /// When it ended, or was pre-empted.
    pub ended: Instant,
}

/// What happened at a host, each in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTrace {
    /// Packets that it took, with their interrupts.
    pub packets: Vec<Delivered>,
    /// Interrupts that its NIC raised.
    pub interrupts: Vec<Interrupted>,
    /// What its cores did.
    pub cores: Vec<CoreSpan>,
}

/// What is seen of a host in a measurement.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) holds: Times,
    pub(super) trace: HostTrace,
    most: usize,
}

impl Seen {
    /// That keeps a trace of the first `most` things of each kind.
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }
}

impl Observer for Seen {
    fn interrupted(&mut self, interrupt: &Interrupted) {
        if self.trace.interrupts.len() < self.most {
            self.trace.interrupts.push(*interrupt);
        }
    }

    fn delivered(&mut self, delivered: &Delivered) {
        self.holds.record(delivered.hold.as_nanos());
        if self.trace.packets.len() < self.most {
            self.trace.packets.push(*delivered);
        }
    }
}

impl Watch for Seen {
    fn ran(&mut self, core: usize, activity: Activity, begun: Instant, ended: Instant) {
        if self.trace.cores.len() < self.most {
            self.trace.cores.push(CoreSpan { core, activity, begun, ended });
        }
    }
}
