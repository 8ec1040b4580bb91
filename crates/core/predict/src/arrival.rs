//! Arrivals, and a bounded number of them to go through again.

use alloc::vec::Vec;

use base::time::Instant;
use capture::CapturedPacket;
use nic::headers::{Headers, Malformed};

/// A packet that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivedPacket {
    /// When, since the first packet of the capture. It never goes back.
    pub at: Instant,
    /// Bytes of the frame, FCS not included.
    pub length: u32,
    /// The headers that rules look at.
    pub headers: Result<Headers, Malformed>,
}

impl ArrivedPacket {
    /// That of a captured packet, if time begins at `begin_ns` (nanoseconds since 1970).
    #[inline]
    #[must_use]
    pub fn of(packet: &CapturedPacket, begin_ns: u64) -> Self {
        let at = Instant::from_nanos(packet.at_ns.saturating_sub(begin_ns));
        Self { at, length: packet.length, headers: packet.headers }
    }
}

/// The first arrivals, for what needs more than one look.
#[derive(Clone, Debug)]
pub struct Sample {
    arrivals: Vec<ArrivedPacket>,
    most: usize,
}

impl Sample {
    /// None yet, of at most so many: each takes some 80 bytes.
    #[must_use]
    pub const fn of_at_most(most: usize) -> Self {
        Self { arrivals: Vec::new(), most }
    }

    /// Keeps an arrival if there is room.
    #[inline]
    pub fn push(&mut self, arrival: &ArrivedPacket) {
        if self.arrivals.len() < self.most {
            self.arrivals.push(arrival.clone());
        }
    }

    /// Those that were kept, in their order.
    #[must_use]
    pub fn arrivals(&self) -> &[ArrivedPacket] {
        &self.arrivals
    }
}
