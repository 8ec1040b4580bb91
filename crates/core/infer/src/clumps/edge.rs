//! Where the distances of clumps begin, and what they do there.

use super::Clump;
use super::pace::Pace;

/// The part of all distances that has to be at the edge, and how wide that is.
const AT_EDGE: f64 = 0.04;
const WIDTH: f64 = 1.05;
/// The part that may be below it, for each part at it.
const BELOW: f64 = 0.1;
/// Distances that have to be at it.
const FEWEST: usize = 20;
/// By how much the beginnings of clumps differ from the interrupts, in nanoseconds and at most as a
/// part of the edge.
const JITTER_NS: f64 = 2_500.0;
const JITTER: f64 = 0.12;

/// By how many times more distances are at the edge than in as much behind it, of a throttle at
/// least and of a delay at most.
const AT_ONCE: f64 = 4.0;
const GRADUALLY: f64 = 2.0;

/// A sharp edge of distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// Where it is, in nanoseconds.
    pub(super) at: f64,
    /// Where it begins.
    pub(super) low: f64,
    /// Half of the width in which the middle half of what is at it lies.
    pub(super) spread: f64,
    /// Distances that are at it.
    pub(super) count: usize,
}

/// What distances do at and behind the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Throttle,
    Delay,
    Periodic,
    /// Two of them look alike here.
    Unclear,
}

/// From the beginning of a clump to that of the next one, in nanoseconds.
pub(super) fn distances(clumps: &[Clump]) -> Vec<f64> {
    clumps.windows(2).map(|pair| pair[1].begin.saturating_sub(pair[0].begin) as f64).collect()
}

impl Edge {
    /// The first place at which many distances are, and below which there are hardly any.
    pub(super) fn find(distances: &[f64]) -> Option<Self> {
        let mut sorted = distances.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let needed = FEWEST.max((AT_EDGE * sorted.len() as f64) as usize);
        let mut end = 0;
        for (begin, low) in sorted.iter().enumerate() {
            while sorted.get(end).is_some_and(|it| *it <= (low * WIDTH).max(low + JITTER_NS / 2.0))
            {
                end += 1;
            }
            if end - begin >= needed {
                let at = &sorted[begin..end];
                let quarter = at.len() / 4;
                let spread = (at[at.len() - 1 - quarter] - at[quarter]) / 2.0;
                // Stamps of one interrupt differ, so the first distances at it are a little below.
                let below = begin.saturating_sub(at.len() / 50);
                let is_sharp = below as f64 <= BELOW * at.len() as f64;
                let low = at[at.len() / 20];
                return is_sharp.then_some(Self { at: at[quarter], low, spread, count: at.len() });
            }
        }
        None
    }

    /// By how much a distance may be wrong.
    fn slack(&self) -> f64 {
        JITTER_NS.max(0.03 * self.at).min(JITTER * self.at)
    }

    /// How many distances are longer than the edge, and which part of those is a whole number of
    /// the same period.
    fn ticks(&self, distances: &[f64]) -> (usize, f64) {
        let later = || distances.iter().filter(|it| (1.2 * self.at..8.0 * self.at).contains(*it));
        // The edge is known to a part of the slack, which many periods multiply: so each that is
        // near a whole number says what the period is.
        let mut period = self.at;
        for most in [2.5, 4.5, 8.5] {
            let (mut sum, mut weight) = (self.at * self.count as f64, self.count as f64);
            for distance in later().filter(|it| **it < most * period) {
                let times = (distance / period).round();
                if (distance - times * period).abs() <= self.slack() {
                    sum += distance * times;
                    weight += times * times;
                }
            }
            period = sum / weight;
        }
        let is_whole = |it: &&f64| (**it - (**it / period).round() * period).abs() <= self.slack();
        let count = later().count();
        (count, later().filter(is_whole).count() as f64 / count.max(1) as f64)
    }

    /// What kind of hold ends so.
    pub(super) fn shape(&self, clumps: &[Clump], distances: &[f64]) -> Shape {
        let (count, whole) = self.ticks(distances);
        let chance = 2.0 * self.slack() / self.at;
        let pace = Pace::of(clumps, self.at);
        if count >= FEWEST && whole > 0.85 {
            let is_pace = pace.is_of(self.at, self.slack());
            return if is_pace { Shape::Unclear } else { Shape::Periodic };
        }
        if count < FEWEST || whole > chance + 0.3 {
            return Shape::Unclear;
        }
        let packets: u32 = clumps.iter().map(|clump| clump.packets).sum();
        // From one packet to the next, in the mean: by that a delay is later than its edge.
        let wait = distances.iter().sum::<f64>() / f64::from(packets.max(1));
        if wait < self.slack() {
            return Shape::Unclear;
        }
        // What a throttle has held is seen at the edge; of a delay, there is no more at its
        // beginning than a little later.
        let beside = |from: f64, to: f64| {
            let within = |it: &&f64| {
                (self.at + from * self.slack()..self.at + to * self.slack()).contains(*it)
            };
            distances.iter().filter(within).count() as f64
        };
        match beside(-1.0, 1.0) / beside(1.0, 3.0).max(1.0) {
            part if part > AT_ONCE && !pace.is_shaping => Shape::Throttle,
            part if part < GRADUALLY => Shape::Delay,
            _ => Shape::Unclear,
        }
    }
}
