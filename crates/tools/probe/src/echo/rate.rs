//! Limits on how many answers one address gets.
//!
//! Each address has a bucket of tokens, kept as the moment at which it will be full again (GCRA).
//! There is a fixed number of buckets, and addresses share one where a random hash puts them
//! together: memory is bounded, whatever addresses are forged.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use sys::refusals::counted_as;

const BUCKETS: usize = 4_096;

/// The fewest answers that may come at once.
const LEAST_BURST: u32 = 100;

pub(super) struct Rate {
    full_again: Vec<Instant>,
    hash: RandomState,
    each: Duration,
    burst: Duration,
}

impl Rate {
    /// So many answers a second, half of them at once.
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        let each = Duration::from_secs(1) / per_second;
        let burst = each * (per_second / 2).max(LEAST_BURST);
        Self { full_again: vec![now; BUCKETS], hash: RandomState::new(), each, burst }
    }

    /// Whether `to` may have an answer now, which then counts.
    pub(super) fn admits(&mut self, to: IpAddr, now: Instant) -> bool {
        let bucket = self.hash.hash_one(counted_as(to)) as usize % BUCKETS;
        let full_again = self.full_again[bucket].max(now) + self.each;
        let admits = full_again <= now + self.burst;
        if admits {
            self.full_again[bucket] = full_again;
        }
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_gets_its_burst_and_its_rate_and_others_theirs() {
        let begin = Instant::now();
        let mut rate = Rate::new(1_000, begin);
        let mut answered = |from: &str, ms: u64| {
            let now = begin + Duration::from_millis(ms);
            (0..10_000).filter(|_| rate.admits(from.parse().unwrap(), now)).count()
        };
        assert_eq!(answered("10.0.0.1", 0), 500);
        assert_eq!(answered("::ffff:10.0.0.1", 0), 0, "it is the same");
        assert_eq!(answered("10.0.0.1", 100), 100);
        assert_eq!(answered("10.0.0.1", 60_000), 500, "no more than a full bucket");
        // All addresses of a host's network count as one.
        assert_eq!(answered("fd00::1", 60_000) + answered("fd00::2", 60_000), 500);
    }
}
