//! Senders that keep to a pace: their packets make sharp distances by themselves.
//!
//! Behind a delay, the next wait begins with the next packet. If that comes at a time which the
//! senders' pace fixes, all distances are as sharp as those of a throttle; and a pace of a whole
//! number of holds looks like a tick. Counts of packets in windows tell: of independent senders
//! they vary as much as their mean (the index of dispersion of a Poisson process is 1), of paced
//! ones hardly at all.

use super::{Clump, MAX_FLOWS};

/// An index of dispersion below this is of a pace; of 30 windows and more, chance makes it one in
/// 50 of independent senders.
const PACED: f64 = 0.5;
/// Windows that there have to be.
const WINDOWS: usize = 30;
/// How many holds, or distances of a flow, a window has.
const LENGTH: f64 = 8.0;
/// The part of all clumps with packets of paced flows from which on they shape the distances.
const PART: f64 = 0.3;
/// Multiples of a tick that a pace may be taken for.
const MULTIPLES: f64 = 8.0;

/// What is known of the senders' pace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pace {
    /// Whether paced flows shape the distances.
    pub(super) is_shaping: bool,
    /// Mean distances of flows that are paced, or may be, in nanoseconds.
    distances: Vec<f64>,
}

impl Pace {
    /// Of these clumps, which a hold of about `edge_ns` separates.
    pub(super) fn of(clumps: &[Clump], edge_ns: f64) -> Self {
        let Some((first, last)) = clumps.first().zip(clumps.last()) else { return Self::default() };
        let whole = last.begin.saturating_sub(first.begin) as f64;
        let all = whole / clumps.len() as f64;
        let packets = clumps.iter().map(|clump| (clump.begin, clump.packets));
        let is_shaping = is_paced(packets, LENGTH * all.max(edge_ns), first.begin);
        let mut pace = Self { is_shaping, distances: Vec::new() };
        let (mut paced, mut count) = (0, 0);
        for flow in 1..=MAX_FLOWS as u8 + 1 {
            let its = || clumps.iter().filter(|clump| clump.has(flow));
            let seen = its().count();
            count += seen;
            if seen < WINDOWS {
                continue;
            }
            let distance = whole / seen as f64;
            // A flow that is in most clumps is seen at the pace of the holds, whatever its own is.
            let is_dense = distance <= 3.0 * edge_ns;
            let seen_at = its().map(|clump| (clump.begin, 1));
            let is_paced = !is_dense && is_paced(seen_at, LENGTH * distance, first.begin);
            paced += if is_paced { seen } else { 0 };
            if is_paced || pace.is_shaping || is_dense && distance > 1.5 * edge_ns {
                pace.distances.push(distance);
            }
        }
        pace.is_shaping |= paced as f64 > PART * count as f64;
        pace
    }

    /// Whether one of the flows comes at a whole number of ticks.
    pub(super) fn is_of(&self, tick_ns: f64, slack_ns: f64) -> bool {
        self.distances.iter().any(|distance| {
            let times = (distance / tick_ns).round();
            (1.0..=MULTIPLES).contains(&times) && (distance - times * tick_ns).abs() <= slack_ns
        })
    }
}

/// Whether counts in windows vary less than those of independent senders.
fn is_paced(events: impl Iterator<Item = (u64, u32)>, window_ns: f64, from: u64) -> bool {
    let mut counts: Vec<f64> = Vec::new();
    for (at, count) in events {
        let window = (at.saturating_sub(from) as f64 / window_ns) as usize;
        if window >= counts.len() {
            counts.resize(window + 1, 0.0);
        }
        counts[window] += f64::from(count);
    }
    // The last one is cut.
    counts.pop();
    if counts.len() < WINDOWS {
        return false;
    }
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let squares = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>();
    squares / (counts.len() - 1) as f64 <= PACED * mean
}

#[cfg(test)]
mod tests {
    use base::prng::Prng;

    use super::*;

    fn clumps(distance: impl FnMut() -> u64) -> Vec<Clump> {
        let mut begin = 0;
        let times = core::iter::repeat_with(distance).take(2_000);
        let clump = |distance| {
            begin += distance;
            Clump { begin, end: begin, packets: 1, long: 0, bytes: 66, flows: [1, 0, 0, 0] }
        };
        times.map(clump).collect()
    }

    #[test]
    fn paced_senders_are_not_independent_ones() {
        let mut random = Prng::new(1);
        let paced = Pace::of(&clumps(|| 200_000), 40_000.0);
        assert!(paced.is_shaping);
        assert!(paced.is_of(50_000.0, 1_000.0) && !paced.is_of(60_000.0, 1_000.0));
        // Geometric distances, as of a Poisson process.
        let mut geometric = || {
            let mut distance = 10_000;
            while !random.chance(50_000) {
                distance += 10_000;
            }
            distance
        };
        let independent = Pace::of(&clumps(&mut geometric), 40_000.0);
        assert_eq!((independent.is_shaping, independent.is_of(50_000.0, 1_000.0)), (false, false));
        assert_eq!(Pace::of(&[], 40_000.0), Pace::default());
    }
}
