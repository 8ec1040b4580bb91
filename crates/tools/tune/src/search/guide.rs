//! What a model says before anything is measured, and what of it measurements have left.
//!
//! A model of the machine knows how figures change along the first axis better than where they
//! are: it knows neither the NIC nor the way to the far host. So what is measured corrects it: the
//! ratio of a figure to what was expected is interpolated between places, and by how much such
//! ratios differ is how unsure the model is.

use super::Search;
use super::space::Point;
use crate::figures::{Figures, Metric, linear, logarithm};
use crate::goal::{Goal, Sense};

/// Figures to be expected at a point, where a model can say.
pub(crate) type Expect<'a> = dyn Fn(&Point) -> Option<Figures> + 'a;

/// A model whose ratios differ by more than this knows nothing: the logarithm of 2.
const USELESS: f64 = std::f64::consts::LN_2;

/// What a model expects along the first axis.
#[derive(Debug, Default)]
pub(super) struct Guide(Vec<Option<Figures>>);

impl Guide {
    /// Asks for each place of the first axis, by its point.
    pub(super) fn new(points: impl Iterator<Item = Point>, expect: &Expect<'_>) -> Self {
        Self(points.map(|point| expect(&point)).collect())
    }

    /// The place that the model expects to be best.
    fn best(&self, goal: &Goal) -> Option<usize> {
        let costs = self.0.iter().enumerate();
        let costs = costs.filter_map(|(at, figures)| Some((at, goal.cost(figures.as_ref()?))));
        let costs = costs.filter(|(_, cost)| cost.is_finite());
        costs.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
    }

    /// Where measuring begins: at the place that the model expects to be best, and far from it.
    pub(super) fn places(&self, last: usize, goal: &Goal) -> Option<[usize; 3]> {
        let best = self.best(goal)?;
        let far = [0, 2 * last / 3, last / 3].into_iter().filter(|at| *at != best);
        let mut places = [best; 3];
        places[1..].iter_mut().zip(far).for_each(|(place, far)| *place = far);
        Some(places)
    }

    /// Where to look next: the place that may be the best of all with what the model cannot know.
    /// The outer one is None where the model is of no use; the inner one, where nothing better is
    /// to be expected.
    pub(super) fn next(&self, known: &[(usize, Figures)], goal: &Goal) -> Option<Option<usize>> {
        let metrics: Vec<Metric> = goal.metrics().collect();
        let ratios: Vec<Vec<(usize, f64)>> =
            metrics.iter().map(|metric| self.ratios(known, *metric)).collect();
        if ratios.iter().any(|ratios| ratios.len() < 2) {
            return None;
        }
        let doubt = ratios.iter().map(|ratios| spread(ratios)).fold(0.0, f64::max);
        if doubt > USELESS {
            return None;
        }
        let least = known.iter().map(|(_, figures)| goal.cost(figures)).min_by(f64::total_cmp)?;
        let at_best = |place: usize| {
            let expected = self.0[place].as_ref()?;
            let corrected = metrics.iter().zip(&ratios).filter_map(|(metric, ratios)| {
                let better = if goal.wants(*metric) == Sense::Min { -doubt } else { doubt };
                let value = logarithm(expected.get(*metric)?) + between(ratios, place) + better;
                Some((*metric, linear(value)))
            });
            Some((place, goal.cost(&Figures(corrected.collect()))))
        };
        let unknown = (0..self.0.len()).filter(|at| known.iter().all(|(place, _)| place != at));
        let promising = unknown.filter_map(at_best).min_by(|a, b| a.1.total_cmp(&b.1));
        Some(promising.filter(|(_, cost)| *cost < least - super::SAME / 2.0).map(|(at, _)| at))
    }

    /// Logarithms of what was measured to what was expected, by place.
    fn ratios(&self, known: &[(usize, Figures)], metric: Metric) -> Vec<(usize, f64)> {
        let ratio = |(place, figures): &(usize, Figures)| {
            let expected = self.0.get(*place)?.as_ref()?.get(metric)?;
            Some((*place, logarithm(figures.get(metric)?) - logarithm(expected)))
        };
        known.iter().filter_map(ratio).collect()
    }
}

fn spread(ratios: &[(usize, f64)]) -> f64 {
    let values = ratios.iter().map(|(_, ratio)| *ratio);
    values.clone().fold(f64::MIN, f64::max) - values.fold(f64::MAX, f64::min)
}

/// The ratio at a place: between two on the straight line, beyond all that of the nearest.
fn between(ratios: &[(usize, f64)], place: usize) -> f64 {
    let after = ratios.iter().position(|(at, _)| *at >= place).unwrap_or(ratios.len() - 1);
    let (to, high) = ratios[after];
    let (from, low) = ratios[after.saturating_sub(1)];
    if to <= from || place >= to || place <= from {
        return if place <= from { low } else { high };
    }
    low + (high - low) * (place - from) as f64 / (to - from) as f64
}

impl Search<'_> {
    /// Points in the order in which the model expects them to be good; those that it knows nothing
    /// of come last, in their own order. The setting that is in force stays first: others are
    /// compared with it.
    pub(super) fn by_expectation(&self, points: &mut [Point]) {
        let Some(expect) = self.expect else { return };
        points.sort_by_cached_key(|point| {
            let cost = expect(point).map_or(f64::INFINITY, |figures| self.goal.cost(&figures));
            // Costs in thousandths are an order that is the same in each run.
            (cost * 1e3).clamp(-1e15, 1e15) as i64
        });
        if let Some(at) = points.iter().position(|point| *point == self.space.present) {
            points[..=at].rotate_right(1);
        }
    }
}
