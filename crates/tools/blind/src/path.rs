//! The wire: what it costs, what it varies by, and who queues in front.

use crate::decoy::Decoy;
use crate::random::Random;

/// One direction of a wire, in nanoseconds.
pub(crate) struct Path {
    latency: f64,
    jitter: f64,
    decoy: Option<Decoy>,
    last: f64,
    /// Until when bulk in front keeps the wire busy, and when the next burst comes.
    busy_until: f64,
    next_burst: f64,
    first: bool,
    random: Random,
}

impl Path {
    pub(crate) fn new(latency: f64, jitter: f64, decoy: Option<Decoy>, random: Random) -> Self {
        Self {
            latency,
            jitter,
            decoy,
            last: 0.0,
            busy_until: 0.0,
            next_burst: 0.0,
            first: true,
            random,
        }
    }

    /// When a packet that leaves at `sent` arrives; packets keep their order.
    pub(crate) fn carry(&mut self, sent: f64) -> f64 {
        if let Some(Decoy::Queue { every, longest }) = self.decoy {
            while self.next_burst <= sent {
                let length = self.random.between(0.0, longest * 1e3);
                self.busy_until = self.busy_until.max(self.next_burst) + length;
                self.next_burst += self.random.exponential(every * 1e3);
            }
        }
        let leaves = sent.max(self.busy_until);
        let mut arrives = leaves + self.latency + self.random.exponential(self.jitter);
        if let (true, Some(Decoy::First { takes })) = (self.first, self.decoy) {
            arrives += takes * 1e3;
        }
        self.first = false;
        self.last = self.last.max(arrives);
        self.last
    }
}
