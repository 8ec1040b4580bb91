//! From the arrivals of a capture: did something hold these packets, of which family, for how long?
//!
//! # Theory of operation
//!
//! A kernel stamps packets behind the NIC's hold, so packets that waited together have nearly one
//! stamp: a *clump*. Flows make clumps by themselves, too: a burst of a sender, a full queue of a
//! switch. What they cannot do is keep away from each other. After each interrupt, a NIC that holds
//! leaves a *zone* in which no packet of any flow is seen, while packets of independent flows would
//! fall into it as into any other time:
//!
//! ```text
//! interrupts    │                    │                    │
//! stamps        ▪▪▪▪                 ▪▪                   ▪▪▪▪▪▪
//!                   ◀──── zone ────▶     ◀──── zone ────▶
//! ```
//!
//! So there are two steps. *Is there a zone?* How many packets ought to be in it if flows were
//! independent is counted ([`zone`]); that there are hardly any says that something holds. *How
//! does it end?* ([`edge`]) The distances of clumps begin at a sharp edge:
//!
//! - of a throttle, what waited is seen at the edge and at no other distance;
//! - of a delay, later than the edge by the wait for the first packet;
//! - of a tick, at the edge, at twice, at three times that;
//! - of an adaptive setting, there are several edges, each in stretches of its own ([`levels`]).
//!
//! Where senders keep to a pace of their own ([`pace`]), a delay's distances may be as sharp as a
//! throttle's, and the family stays open. Where the edge is not sharp, as behind Wi-Fi, where one
//! flow is nearly all there is, or where the wire was full, which has distances of its own, nothing
//! is said of a family. See Prasad, Jain and Dovrolis, "Effects of interrupt coalescence on network
//! measurements", PAM 2004, for what the clumps do to measurements of one flow, and how bursts at
//! the rate of a host betray them.

mod edge;
mod judge;
mod levels;
mod pace;
mod wire;
mod zone;

pub use judge::{ClumpEvidence, Clumping};

use wire::WireSpacing;

/// Packets that are no further apart, in nanoseconds, are of one clump: a poll takes less than that
/// for a packet.
const TOGETHER_NS: u64 = 2_000;
/// Clumps that are looked at: the first of a capture.
const MOST: usize = 60_000;
/// Flows that have a number of their own.
const MAX_FLOWS: usize = 250;
/// Flows of a clump that are kept.
const FLOWS: usize = 4;

/// Packets that were seen together.
#[derive(Clone, Copy, Debug)]
struct Clump {
    /// When the first was, in nanoseconds.
    begin: u64,
    /// When the last was.
    end: u64,
    packets: u32,
    /// Packets of more than [`SHORT`](zone::SHORT) bytes.
    long: u32,
    bytes: u64,
    /// The first flows that it has packets of, by number from 1; 0 is none.
    flows: [u8; FLOWS],
}

impl Clump {
    fn has(&self, flow: u8) -> bool {
        self.flows.contains(&flow)
    }

    fn add(&mut self, at: u64, flow: u8, bytes: u32) {
        self.end = at;
        self.packets += 1;
        self.long += u32::from(bytes > zone::SHORT);
        self.bytes += u64::from(bytes);
        if !self.has(flow)
            && let Some(free) = self.flows.iter_mut().find(|it| **it == 0)
        {
            *free = flow;
        }
    }

    fn flow_count(&self) -> usize {
        self.flows.iter().filter(|flow| **flow > 0).count()
    }
}

/// Collects the clumps of a capture. It keeps a bounded number of them.
#[derive(Clone, Debug, Default)]
pub struct Clumps {
    clumps: Vec<Clump>,
    current: Option<Clump>,
    /// The number of each flow, in the order of what it was called by.
    flows: Vec<(u64, u8)>,
    wire: WireSpacing,
}

impl Clumps {
    /// Whether more packets would be looked at.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.clumps.len() < MOST
    }

    /// The next packet of a capture: when it was stamped, in nanoseconds that do not go back, a
    /// number that its flow has and hardly another one, and bytes of its frame.
    pub fn add(&mut self, at_ns: u64, flow: u64, bytes: u32) {
        if !self.has_room() {
            return;
        }
        let flow = self.number(flow);
        self.wire.add(at_ns, bytes);
        match &mut self.current {
            Some(clump) if at_ns.saturating_sub(clump.end) <= TOGETHER_NS => {
                clump.add(at_ns, flow, bytes);
            }
            current => {
                self.clumps.extend(current.take());
                let (begin, end, flows) = (at_ns, at_ns, [0; FLOWS]);
                let mut clump = Clump { begin, end, packets: 0, long: 0, bytes: 0, flows };
                clump.add(at_ns, flow, bytes);
                *current = Some(clump);
            }
        }
    }

    /// The number of a flow, from 1; all that come late have one.
    fn number(&mut self, flow: u64) -> u8 {
        match self.flows.binary_search_by_key(&flow, |(known, _)| *known) {
            Ok(at) => self.flows[at].1,
            Err(_) if self.flows.len() >= MAX_FLOWS => MAX_FLOWS as u8 + 1,
            Err(at) => {
                let number = self.flows.len() as u8 + 1;
                self.flows.insert(at, (flow, number));
                number
            }
        }
    }

    /// What the clumps say.
    #[must_use]
    pub fn judge(&self) -> Clumping {
        judge::judge(&self.clumps, &self.wire)
    }
}
