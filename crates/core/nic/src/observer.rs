//! Reports of what happened at a queue: counters by reason, captures, traces and
//! explanations read this.

use crate::descriptor::Descriptor;
use crate::moderation::Reason;
use crate::time::{Duration, Instant};

/// One interrupt that the NIC raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The queue whose vector it is.
    pub queue: u16,
    /// Counts the interrupts of this queue, from 1.
    pub number: u64,
    /// When it was raised.
    pub at: Instant,
    /// Why the strategy raised it.
    pub reason: Reason,
    /// How many completed packets it signals to the host.
    pub packets: u32,
}

/// One packet that the host took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The queue it came from.
    pub queue: u16,
    /// Descriptor of the packet.
    pub descriptor: Descriptor,
    /// When the host took it.
    pub at: Instant,
    /// How long it waited for its interrupt; zero if the host found it while it was polling
    /// anyway.
    pub hold: Duration,
    /// The interrupt whose poll found it; `None` if the host polled unasked.
    pub interrupt: Option<Interrupted>,
}

/// Receives reports of what happens; `()` ignores them, at no cost.
pub trait Observer {
    /// An interrupt was raised.
    fn interrupted(&mut self, interrupt: &Interrupted) {
        let _ = interrupt;
    }

    /// The host took a packet.
    fn delivered(&mut self, delivered: &Delivered) {
        let _ = delivered;
    }
}

impl Observer for () {}
