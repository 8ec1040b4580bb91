//! Draws that worlds need, from the generator that stays the same for years.

use base::prng::Prng;

/// A source of draws.
#[derive(Clone, Debug)]
pub(crate) struct Chance(Prng);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Prng::new(seed))
    }

    /// Evenly in `[0, 1)`.
    pub(crate) fn share(&mut self) -> f64 {
        self.0.below(1 << 53) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.share()
    }

    pub(crate) fn whole(&mut self, from: u32, to: u32) -> u32 {
        from + self.0.below(u64::from(to - from) + 1) as u32
    }

    pub(crate) fn is(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.share()).ln() * mean
    }

    /// One of several.
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.below(of.len() as u64) as usize]
    }
}
