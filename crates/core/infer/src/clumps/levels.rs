//! Holds that change: the shortest distances of short stretches lie at a few levels.
//!
//! A driver that adapts chooses from a list of waits (DIM, `lib/dim/net_dim.c` of Linux: 1, 8, 64,
//! 128 and 256 us unless somebody has set others) and decides again after 64 interrupts. So in a
//! stretch of about as many, hardly a distance is shorter than the shortest wait in it, and over
//! the capture these shortest distances gather at some values with nothing between them. One wait
//! has one such value, and what makes distances by chance, as Wi-Fi, has them everywhere.

use super::Clump;
use super::edge::distances;
use super::judge::{ClumpEvidence, ENOUGH, HARDLY};
use super::zone::{Visits, is_full_wire};

/// Clumps of a stretch.
const STRETCH: usize = 48;
/// Which of its distances counts, from the shortest: two may be of another level, or of chance.
const THIRD: usize = 2;
/// Shorter ones are what a host takes to poll, in nanoseconds.
const SHORTEST_NS: f64 = 20_000.0;
/// Distances of a level differ by no more.
const WIDTH: f64 = 1.08;
/// Levels are as far apart.
const APART: f64 = 1.4;
/// Stretches of a level, and all that have one.
const FEWEST: usize = 4;
const FEWEST_OF_ALL: usize = 12;
/// The part of the stretches that has to be at a level.
const PART: f64 = 0.6;

/// What waits there are.
pub(super) struct Levels {
    /// The shortest, the usual and the longest, in nanoseconds.
    pub(super) shortest: f64,
    pub(super) usual: f64,
    pub(super) longest: f64,
    pub(super) evidence: ClumpEvidence,
}

impl Levels {
    /// Those of a capture, if it has several.
    pub(super) fn find(clumps: &[Clump]) -> Option<Self> {
        let stretches: Vec<(&[Clump], f64)> = clumps
            .chunks_exact(STRETCH)
            .map(|stretch| (stretch, third(stretch)))
            .filter(|(_, distance)| *distance >= SHORTEST_NS)
            .collect();
        let mut sorted: Vec<f64> = stretches.iter().map(|(_, distance)| *distance).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let levels = gathered(&sorted);
        let level_of = |distance: f64| {
            levels.iter().copied().find(|low| (*low..=low * WIDTH).contains(&distance))
        };
        let at: Vec<(&[Clump], f64)> = stretches
            .iter()
            .filter_map(|(stretch, distance)| Some((*stretch, level_of(*distance)?)))
            .collect();
        let is_covered = at.len() as f64 >= PART * stretches.len() as f64;
        if levels.len() < 2 || at.len() < FEWEST_OF_ALL || !is_covered {
            return None;
        }
        let mut evidence = ClumpEvidence::default();
        for (stretch, level) in &at {
            if is_full_wire(stretch, *level) {
                return None;
            }
            let Visits { expected, seen } = Visits::of(stretch, *level);
            evidence.clumps += stretch.len() as u64;
            evidence.expected += expected;
            evidence.seen += seen;
        }
        let is_empty =
            evidence.expected >= ENOUGH && evidence.seen as f64 <= HARDLY * evidence.expected;
        let (shortest, longest) = (*levels.first()?, *levels.last()?);
        let mut all: Vec<f64> = at.iter().map(|(_, level)| *level).collect();
        all.sort_unstable_by(f64::total_cmp);
        let usual = all[all.len() / 2];
        is_empty.then_some(Self { shortest, usual, longest, evidence })
    }
}

/// The third of the distances in a stretch, from the shortest.
fn third(stretch: &[Clump]) -> f64 {
    let mut distances = distances(stretch);
    *distances.select_nth_unstable_by(THIRD, f64::total_cmp).1
}

/// Where sorted distances gather, from the shortest: each the lower end of a level.
fn gathered(sorted: &[f64]) -> Vec<f64> {
    let mut left = sorted.to_vec();
    let mut levels: Vec<f64> = Vec::new();
    loop {
        let within = |low: f64| left.partition_point(|it| *it <= low * WIDTH);
        let counts = left.iter().enumerate().map(|(at, low)| (within(*low) - at, *low));
        // Of equal ones the first: the count is the key, and later ones do not replace it.
        let most = counts.reduce(|best, next| if next.0 > best.0 { next } else { best });
        let Some((count, low)) = most else { break };
        if count < FEWEST.max(sorted.len() / 20) {
            break;
        }
        let is_apart = |level: &f64| low > APART * level || *level > APART * low;
        if levels.iter().all(is_apart) {
            levels.push(low);
        }
        left.retain(|it| !(low..=low * WIDTH).contains(it));
    }
    levels.sort_unstable_by(f64::total_cmp);
    levels
}

#[cfg(test)]
mod tests {
    use super::gathered;

    #[test]
    fn distances_gather_at_levels_or_do_not() {
        let mut two: Vec<f64> = (0..40).map(|at| 135e3 + f64::from(at % 8) * 1e3).collect();
        two.extend((0..20).map(|at| 264e3 + f64::from(at % 5) * 1e3));
        two.extend([150e3, 170e3, 230e3]);
        two.sort_by(f64::total_cmp);
        assert_eq!(gathered(&two), [135e3, 264e3]);
        let spread: Vec<f64> = (0..60).map(|at| 30e3 * 1.06_f64.powi(at)).collect();
        assert!(gathered(&spread).is_empty());
    }
}
