//! Undoing clumps as far as the wire proves them wrong.
//!
//! A cable carries one frame after the other. Of packets that were stamped at nearly one moment,
//! all but the first must have arrived earlier than their stamps say, if the cable has this rate:
//! before packet i + 1 began to arrive, packet i had arrived. So, from the end,
//!
//! ```text
//! latest(i) = min(stamp(i), latest(i + 1) - wire time of packet i + 1)
//! ```
//!
//! That is the latest moment that the stamps allow, and no more than that is claimed: a NIC that
//! held all of them for longer leaves the same stamps. The order is that of the capture.

use alloc::collections::VecDeque;

use base::time::{Duration, Instant};

use crate::arrival::ArrivedPacket;

/// Bytes of a frame on the wire beside those of a capture: FCS, preamble, gap (IEEE 802.3).
const BESIDE: u64 = 4 + 8 + 12;
/// The shortest frame with its FCS.
const SHORTEST: u64 = 64;
/// Packets that are looked at together; the first half of them is then final.
const TOGETHER: usize = 8_192;

/// How far stamps were moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpreadCounts {
    /// Packets that were moved.
    pub moved: u64,
    /// Nanoseconds of all moves.
    pub sum_ns: u64,
    /// The longest move in nanoseconds.
    pub max_ns: u64,
}

/// Moves arrivals back to the latest moment at which a wire can have brought them.
#[derive(Debug)]
pub struct WireSpread {
    bits_per_second: u64,
    waiting: VecDeque<ArrivedPacket>,
    counts: SpreadCounts,
    /// The last arrival that was passed on.
    floor: Instant,
}

impl WireSpread {
    /// A wire of this rate, which is not 0.
    #[must_use]
    pub fn new(bits_per_second: u64) -> Self {
        let (waiting, floor) = (VecDeque::new(), Instant::ZERO);
        Self { bits_per_second, waiting, counts: SpreadCounts::default(), floor }
    }

    /// How far stamps were moved so far.
    #[must_use]
    pub const fn counts(&self) -> SpreadCounts {
        self.counts
    }

    /// How long a frame of `length` captured bytes is on the wire.
    #[must_use]
    pub fn wire_time(&self, length: u32) -> Duration {
        wire_time(length, self.bits_per_second)
    }

    /// The next arrival; `each` gets those whose moments are final.
    pub fn push(&mut self, arrival: &ArrivedPacket, each: &mut impl FnMut(&ArrivedPacket)) {
        self.waiting.push_back(arrival.clone());
        if self.waiting.len() >= TOGETHER {
            self.pass(TOGETHER / 2, each);
        }
    }

    /// No more come; `each` gets the rest.
    pub fn finish(&mut self, each: &mut impl FnMut(&ArrivedPacket)) {
        self.pass(self.waiting.len(), each);
    }

    fn pass(&mut self, count: usize, each: &mut impl FnMut(&ArrivedPacket)) {
        let mut next: Option<(Instant, u32)> = None;
        for arrival in self.waiting.iter_mut().rev() {
            if let Some((at, length)) = next {
                let begins = at
                    .as_nanos()
                    .saturating_sub(wire_time(length, self.bits_per_second).as_nanos());
                let latest = Instant::from_nanos(begins).max(self.floor);
                if latest < arrival.at {
                    let by = arrival.at.since(latest).as_nanos();
                    self.counts.moved += 1;
                    self.counts.sum_ns += by;
                    self.counts.max_ns = self.counts.max_ns.max(by);
                    arrival.at = latest;
                }
            }
            next = Some((arrival.at, arrival.length));
        }
        for arrival in self.waiting.drain(..count) {
            self.floor = arrival.at;
            each(&arrival);
        }
    }
}

/// How long a frame of `length` captured bytes is on a wire.
pub(crate) fn wire_time(length: u32, bits_per_second: u64) -> Duration {
    let bits = ((u64::from(length) + 4).max(SHORTEST) + BESIDE - 4) * 8;
    Duration::from_nanos(bits.saturating_mul(1_000_000_000) / bits_per_second.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn spread(arrivals: &[(u64, u32)]) -> (Vec<u64>, SpreadCounts) {
        let (mut spread, mut out) = (WireSpread::new(1_000_000_000), Vec::new());
        let mut each = |arrival: &ArrivedPacket| out.push(arrival.at.as_nanos());
        for (at, length) in arrivals {
            let (at, headers) = (Instant::from_nanos(*at), nic::headers::parse(&[0; 60]));
            spread.push(&ArrivedPacket { at, length: *length, headers }, &mut each);
        }
        spread.finish(&mut each);
        let counts = spread.counts();
        (out, counts)
    }

    #[test]
    fn a_clump_becomes_what_the_wire_can_have_brought() {
        // 1514 bytes take 12304 ns on 1 Gbit/s, the shortest frame 672.
        let (at, counts) = spread(&[(100_000, 1_514), (100_000, 1_514), (100_100, 60)]);
        assert_eq!(at, [100_100 - 672 - 12_304, 100_100 - 672, 100_100]);
        assert_eq!((counts.moved, counts.max_ns), (2, 100_000 - 87_124));
    }

    #[test]
    fn what_the_wire_can_have_brought_stays() {
        let arrivals: Vec<_> = (1..=20_000).map(|n| (n * 12_304, 1_514)).collect();
        let (at, counts) = spread(&arrivals);
        assert!(at.iter().zip(&arrivals).all(|(at, (stamp, _))| at == stamp));
        assert_eq!(counts, SpreadCounts::default());
    }

    #[test]
    fn moments_never_go_back_and_none_is_lost() {
        let arrivals: Vec<_> = (0..30_000).map(|n| (1_000_000 + n / 100 * 50, 1_514)).collect();
        let (at, counts) = spread(&arrivals);
        assert!(at.len() == 30_000 && at.is_sorted(), "{counts:?}");
    }
}
