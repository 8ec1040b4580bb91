//! The finals of a search: which of two settings is better, and how sure that is.

use std::cmp::Ordering;

use anyhow::Result;
use base::prng::Prng;

use super::{Measure, Point, SAME, Search, SearchResult, Trial};
use crate::figures::{Figures, Metric, linear, logarithm};
use crate::goal::Goal;

/// How many that may be the best go on to the finals.
const FINALISTS: usize = 3;

/// Rounds that two must share before one of them leaves.
const ROUNDS_TO_TELL: usize = 4;

/// Samples of the bootstrap.
const SAMPLES: u32 = 200;

/// Of 1000, how many samples the interval leaves out on each side: 95 % are within.
const TAIL: usize = 25;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Doubt {
    pub(crate) low: f64,
    pub(crate) mean: f64,
    pub(crate) high: f64,
    pub(crate) rounds: usize,
}

/// Compares two trials by the rounds that they share: by how much `a` is worse than `b`. `None` if
/// they share none.
pub(crate) fn compare(a: &Trial, b: &Trial, goal: &Goal) -> Option<Doubt> {
    let of_b = |round: &u32| b.rounds.iter().find(|(other, _)| other == round).map(|(_, of)| of);
    let pairs = a.rounds.iter().filter_map(|(round, of_a)| Some((of_a, of_b(round)?)));
    let shared: Vec<[Logarithms; 2]> =
        pairs.map(|(a, b)| [logarithms(goal, a), logarithms(goal, b)]).collect();
    let difference = |sample: &[usize]| {
        let cost = |side: usize| goal.cost(&mean(sample.iter().map(|at| &shared[*at][side])));
        cost(0) - cost(1)
    };
    let count = shared.len();
    if count == 0 {
        return None;
    }
    let each: Vec<usize> = (0..count).collect();
    let mean = difference(&each);
    let mut random = Prng::new(count as u64);
    let mut draw = || random.below(count as u64) as usize;
    let mut samples: Vec<f64> =
        (0..SAMPLES).map(|_| difference(&(0..count).map(|_| draw()).collect::<Vec<_>>())).collect();
    samples.sort_by(f64::total_cmp);
    let tail = samples.len() * TAIL / 1_000;
    Some(Doubt { low: samples[tail], mean, high: samples[samples.len() - 1 - tail], rounds: count })
}

/// The logarithms of the figures that a goal is about.
type Logarithms = Vec<(Metric, f64)>;

fn logarithms(goal: &Goal, figures: &Figures) -> Logarithms {
    let about = |metric: &Metric| goal.is_about(*metric);
    let pairs = figures.0.iter().filter(|(metric, _)| about(metric));
    pairs.map(|(metric, value)| (*metric, logarithm(*value))).collect()
}

/// The geometric means of figures that rounds have in common, as [`Figures::mean`] has them.
fn mean<'a>(mut rounds: impl ExactSizeIterator<Item = &'a Logarithms>) -> Figures {
    let count = rounds.len() as f64;
    let Some(first) = rounds.next() else { return Figures::default() };
    let mut sums = first.clone();
    for round in rounds {
        for (sum, (metric, value)) in sums.iter_mut().zip(round) {
            // A figure that one round lacks is none.
            sum.1 += if sum.0 == *metric { *value } else { f64::NAN };
        }
    }
    Figures(sums.into_iter().map(|(metric, sum)| (metric, linear(sum / count))).collect())
}

impl Search<'_> {
    /// Lets those that may be the best have further rounds, until one is left, all that are left
    /// are the same, or the budget is used up.
    pub(super) fn finals(mut self, measure: &mut Measure<'_>) -> Result<SearchResult> {
        let mut order: Vec<usize> = (0..self.trials.len()).collect();
        order.sort_by(|a, b| self.cost(*a).total_cmp(&self.cost(*b)));
        let mut left: Vec<usize> = order.into_iter().take(FINALISTS).collect();
        for _ in 0..self.budget.finals {
            if left.len() < 2 || self.are_same(&left) {
                break;
            }
            let points: Vec<Point> = left.iter().map(|at| self.trials[*at].point.clone()).collect();
            self.budget.rounds = 1;
            self.try_points(points, measure)?;
            left.reverse();
            self.drop_the_worse(&mut left);
        }
        let best = self.winner(&left);
        let best = self.without_the_needless(best, measure)?;
        let rivals = left.into_iter().filter(|at| *at != best).collect();
        let expected = |trial: &Trial| self.expect.and_then(|expect| expect(&trial.point));
        let expected = self.trials.iter().map(expected).collect();
        Ok(SearchResult { trials: self.trials, best, rivals, expected })
    }

    /// A pick without what does nothing for it: a part on an axis beside the first, such as a limit
    /// of frames that its time never reaches, stays only if the pick is better with it beyond
    /// doubt, in rounds that have not chosen it.
    fn without_the_needless(&mut self, pick: usize, measure: &mut Measure<'_>) -> Result<usize> {
        let mut best = pick;
        // Without noise a round is enough.
        self.budget.rounds = if self.budget.finals == 0 { 1 } else { ROUNDS_TO_TELL as u32 };
        for axis in (1..self.space.axes.len()).filter(|axis| !self.space.is_named(*axis)) {
            let Point::At(mut places) = self.trials[best].point.clone() else { break };
            if std::mem::take(&mut places[axis]) == 0 {
                continue;
            }
            let plain = Point::At(places);
            if !self.is_tried(&plain) && self.left() == 0 {
                continue;
            }
            let first = self.round;
            self.try_points(vec![plain.clone(), self.trials[best].point.clone()], measure)?;
            let since = |trial: &Trial| {
                let mut trial = trial.clone();
                trial.rounds.retain(|(round, _)| *round >= first);
                trial
            };
            let at = self.trials.iter().position(|trial| trial.point == plain).unwrap_or(best);
            let doubt = compare(&since(&self.trials[at]), &since(&self.trials[best]), self.goal);
            if doubt.is_some_and(|doubt| doubt.low <= 0.0) {
                best = at;
            }
        }
        Ok(best)
    }

    /// The one with the least cost; but the setting that is in force already, if it is the same.
    fn winner(&self, left: &[usize]) -> usize {
        let by_cost =
            |a: &&usize, b: &&usize| -> Ordering { self.cost(**a).total_cmp(&self.cost(**b)) };
        let best = left.iter().min_by(by_cost).copied().unwrap_or(0);
        let present = left.iter().find(|at| self.trials[**at].point == self.space.present);
        let same = present.filter(|at| self.cost(**at) < self.cost(best) + SAME / 4.0);
        same.copied().unwrap_or(best)
    }

    fn are_same(&self, left: &[usize]) -> bool {
        let best = self.winner(left);
        let others = left.iter().filter(|at| **at != best);
        others.map(|at| compare(&self.trials[*at], &self.trials[best], self.goal)).all(|doubt| {
            let is_same = |doubt: Doubt| -SAME < doubt.low && doubt.high < SAME;
            doubt.is_some_and(|doubt| doubt.rounds >= ROUNDS_TO_TELL - 1 && is_same(doubt))
        })
    }

    fn drop_the_worse(&self, left: &mut Vec<usize>) {
        let best = self.winner(left);
        left.retain(|at| {
            let doubt = compare(&self.trials[*at], &self.trials[best], self.goal);
            let is_worse = |doubt: Doubt| doubt.rounds >= ROUNDS_TO_TELL && doubt.low > 0.0;
            *at == best || !doubt.is_some_and(is_worse)
        });
    }
}
