//! Times of a series: as many as fit, drawn so that each of all has the same chance to be kept.

use base::prng::Prng;

/// So many are kept.
const MOST: usize = 1 << 16;

/// Times in microseconds. Count, sum and ends are those of all, quantiles those of the kept ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Samples {
    kept: Vec<f64>,
    count: u64,
    sum: f64,
    least: f64,
    most: f64,
    draws: Prng,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            count: 0,
            sum: 0.0,
            least: f64::INFINITY,
            most: 0.0,
            draws: Prng::new(0),
        }
    }
}

impl Samples {
    /// Takes a time; a reservoir, algorithm R of Vitter, "Random sampling with a reservoir", 1985.
    pub(crate) fn add(&mut self, us: f64) {
        self.count += 1;
        self.sum += us;
        self.least = self.least.min(us);
        self.most = self.most.max(us);
        if self.kept.len() < MOST {
            self.kept.push(us);
        } else if let Some(place) = usize::try_from(self.draws.below(self.count))
            .ok()
            .and_then(|place| self.kept.get_mut(place))
        {
            *place = us;
        }
    }

    /// Takes those of the next piece of a text: each side gives as many as a draw without
    /// replacement from all would take from it.
    pub(crate) fn absorb(&mut self, mut next: Self) {
        let (mut ours, mut theirs) = (self.count, next.count);
        self.count += next.count;
        self.sum += next.sum;
        self.least = self.least.min(next.least);
        self.most = self.most.max(next.most);
        if self.count <= MOST as u64 {
            self.kept.append(&mut next.kept);
            return;
        }
        let mut mine = std::mem::take(&mut self.kept);
        while self.kept.len() < MOST {
            let (side, left) = match self.draws.below(ours + theirs) < ours {
                true => (&mut mine, &mut ours),
                false => (&mut next.kept, &mut theirs),
            };
            *left -= 1;
            let place = self.draws.below(side.len() as u64) as usize;
            self.kept.push(side.swap_remove(place));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn kept(&self) -> &[f64] {
        &self.kept
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    /// The shortest and the longest of all.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stands_for_all() {
        let mut all = Samples::default();
        // Every second one is long: no step of the count may be all that is kept.
        for at in 0..1_000_000_u32 {
            all.add(if at % 2 == 0 { 100.0 } else { 300.0 });
        }
        assert_eq!((all.count(), all.mean(), all.ends()), (1_000_000, 200.0, (100.0, 300.0)));
        assert_eq!(all.kept().len(), MOST);
        let long = |all: &Samples| all.kept().iter().filter(|us| **us > 200.0).count();
        // Six standard deviations of a binomial distribution.
        assert!(long(&all).abs_diff(MOST / 2) < 768, "{}", long(&all));
        // A million more, all long, in a piece of their own: three of four are long then.
        let mut more = Samples::default();
        (0..1_000_000).for_each(|_| more.add(300.0));
        all.absorb(more);
        assert_eq!((all.count(), all.mean(), all.kept().len()), (2_000_000, 250.0, MOST));
        assert!(long(&all).abs_diff(MOST / 4 * 3) < 768, "{}", long(&all));
        let mut few = Samples::default();
        few.add(7.0);
        all.absorb(few);
        assert_eq!((all.count(), all.ends()), (2_000_001, (7.0, 300.0)));
    }
}
