//! Draws that worlds need, from the generator that stays the same for years.

use std::time::Duration;

use base::prng::Prng;

/// A source of draws.
#[derive(Clone, Debug)]
pub(crate) struct Random(Prng);

impl Random {
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

/// The gaps between the packets of bulk, which know nothing of one another: at even gaps, bulk
/// would have holds in step with itself, and hide what they are like.
#[derive(Clone, Debug)]
pub struct Gaps {
    random: Random,
    mean: f64,
}

impl Gaps {
    /// Of bulk of so many packets a second.
    pub fn new(per_second: f64, seed: u64) -> Self {
        Self { random: Random::new(seed), mean: 1.0 / per_second }
    }
}

impl Iterator for Gaps {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.random.exponential(self.mean)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_make_the_rate_that_was_asked_for() {
        let sum: Duration = Gaps::new(2_000.0, 1).take(100_000).sum();
        assert!((49.0..51.0).contains(&sum.as_secs_f64()), "{sum:?}");
        assert_eq!(Gaps::new(0.0, 1).next(), None, "no packets, no gaps");
    }
}
