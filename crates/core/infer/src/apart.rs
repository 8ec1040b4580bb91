//! Which holds the data excludes: the shortest distance that packets kept.
//!
//! Two interrupts are never closer than the hold. A delay starts anew at the first packet after a
//! release, a throttle keeps its gap, a tick its period. So of two packets that came `s` apart, a
//! hold longer than `s` releases the second with the first or later than `s` after it, but not just
//! `s` after it, except by chance. Where most pairs that are `s` apart kept their distance, no hold
//! is longer than that. No floor, no clock and no family is needed for it, and noise of any kind
//! can only hide that pairs were apart.

use crate::series::Series;
use crate::stats::sorted;

/// A pair kept its distance if that changed by less than this share. A tick of a quarter of the
/// distance changes it by more as often as not, so it is not excluded by what it leaves alone.
const TOLERANCE: f64 = 0.25;

/// Classes of distances: from one power of the square root of 2 to the next, in microseconds, from
/// the least distance that shows an interrupt to the silence between trains.
const CLASSES: core::ops::Range<i32> = 3..32;

/// Fewer pairs in a class are chance: that most of twelve keep a distance by accident, where each
/// does with one in five, happens four times in a thousand.
const PAIRS: usize = 12;

/// What pairs of each class of distances did.
#[derive(Clone, Debug)]
pub(crate) struct Distances {
    /// By class: how many pairs there are, and how many kept their distance.
    classes: Vec<(usize, usize)>,
    /// All distances, in microseconds, sorted.
    sorted: Vec<f64>,
}

/// A server that answers one request after the other keeps them apart, too, whether they came
/// together or not: distances below so many of its steps say nothing.
const STEPS: f64 = 2.0;

impl Distances {
    pub(crate) fn of(series: &Series) -> Self {
        let least = STEPS * series.service();
        let mut classes = vec![(0, 0); CLASSES.len()];
        let mut distances = Vec::new();
        for pair in series.points.windows(2) {
            let came = pair[1].arrived - pair[0].arrived;
            distances.push(came);
            if came < least {
                continue;
            }
            let released = pair[1].released - pair[0].released;
            let class = (2.0 * came.max(f64::MIN_POSITIVE).log2()).floor() as i32 - CLASSES.start;
            if let Some((count, kept)) = classes.get_mut(class.max(-1) as usize) {
                *count += 1;
                *kept += usize::from((released - came).abs() < TOLERANCE * came);
            }
        }
        Self { classes, sorted: sorted(distances) }
    }

    /// Of the pairs that came closer than four times `usecs`, how many came closer than that: the
    /// share of them, 0 where there is none.
    pub(crate) fn closer(&self, usecs: f64) -> f64 {
        let below = |usecs: f64| self.sorted.partition_point(|came| *came < usecs) as f64;
        below(usecs) / below(4.0 * usecs).max(1.0)
    }

    /// No hold is longer than this, in microseconds; nothing if no distance was kept.
    pub(crate) fn bound(&self) -> Option<f64> {
        let is_kept = |(count, kept): &(usize, usize)| *count >= PAIRS && 2 * kept > *count;
        self.classes.iter().position(is_kept).map(|class| upper(class) / (1.0 - TOLERANCE))
    }

    /// The shortest distance at which there were enough pairs to tell, kept or not, in
    /// microseconds.
    pub(crate) fn shortest(&self) -> Option<f64> {
        let class = self.classes.iter().position(|(count, _)| *count >= PAIRS)?;
        Some(upper(class) / core::f64::consts::SQRT_2)
    }
}

/// The upper end of a class.
fn upper(class: usize) -> f64 {
    core::f64::consts::SQRT_2.powi(CLASSES.start + class as i32 + 1)
}
