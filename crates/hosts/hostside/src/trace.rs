//! The last few thousand events of a port, kept at all times, so that a picture can be drawn of any
//! moment.

use std::collections::VecDeque;

use base::time::Instant;
use base::times::Times;
use nic::moderation::Reason;
use nic::observer::{Delivered, Interrupted, Observer};

/// Events that are kept for a port.
const MAX_EVENTS: usize = 4_096;

/// The longest hold that is distinguished, in nanoseconds.
const MAX_HOLD_NS: u64 = 10_000_000_000;

/// Something that happened at a port.
#[derive(Clone, Copy, Debug)]
pub enum PortEvent {
    /// An interrupt was raised.
    Interrupt {
        /// When it happened.
        at: Instant,
        /// Why it was raised.
        reason: Reason,
    },
    /// The host took a packet.
    Packet {
        /// When its DMA had completed.
        completed_at: Instant,
        /// When the host took it.
        delivered_at: Instant,
        /// Whether it was marked.
        marked: bool,
        /// Its length in bytes.
        length: u32,
    },
}

/// Records the holds of a port, and its last events.
#[derive(Debug)]
pub struct Watch {
    /// Holds of all packets that were taken.
    pub holds: Times,
    events: VecDeque<PortEvent>,
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl Watch {
    /// A watch that has seen nothing.
    pub fn new() -> Self {
        Self { holds: Times::up_to(MAX_HOLD_NS), events: VecDeque::with_capacity(MAX_EVENTS) }
    }

    /// The events remembered, oldest first.
    pub fn events(&self) -> Vec<PortEvent> {
        self.events.iter().copied().collect()
    }

    fn keep(&mut self, event: PortEvent) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

impl Observer for Watch {
    fn interrupted(&mut self, interrupt: &Interrupted) {
        self.keep(PortEvent::Interrupt { at: interrupt.at, reason: interrupt.reason });
    }

    fn delivered(&mut self, delivered: &Delivered) {
        self.holds.record(delivered.hold.as_nanos().max(1));
        self.keep(PortEvent::Packet {
            completed_at: delivered.descriptor.completed_at,
            delivered_at: delivered.at,
            marked: delivered.descriptor.marked,
            length: delivered.descriptor.length,
        });
    }
}
