//! Finding the best setting in few trials.
//!
//! # Theory of operation
//!
//! There are hundreds of settings, a trial takes a second or two, and no two trials of one setting
//! agree. Four things make it quick:
//!
//! 1. *Along the first axis, figures change smoothly.* A longer hold costs latency and saves
//!    interrupts, whatever the family of the NIC. So a few points far apart are measured, figures
//!    between them are interpolated (logarithm of the figure, linear in the place on the axis), and
//!    the next trial is where the goal is predicted to be met best; until the neighbours of the
//!    best are known, or nothing better is to be expected.
//! 2. *Other axes are tried at the best point only*, and followed as long as they help. What each
//!    has changed is taken to add up (`effects.rs`), and what that lets expect of combinations is
//!    tried as long as there are trials left.
//! 3. *Noise is met by pairs.* Points are measured in rounds, A B C, C B A, so that a machine that
//!    drifts drifts under all of them. In the end those that may be the best have further rounds;
//!    after each, those that are worse beyond doubt leave (successive halving, but by evidence
//!    instead of by number). The doubt is a bootstrap over the rounds that two points share.
//!
//! 4. *A model of the machine says where to begin*, if there is one (`guide.rs`): at the place
//!    that it expects to be best. What was measured corrects it, and the next trials are where it
//!    may still be wrong enough to matter. A model whose errors differ too much from place to place
//!    is left aside.
//!
//! This module measures nothing itself, reads no clock, and with the same figures does the same.

mod effects;
mod finals;
mod guide;
mod space;

pub(crate) use finals::{Doubt, compare};
pub(crate) use space::Point;
pub use space::Space;

use anyhow::Result;

use super::figures::Figures;
use super::goal::Goal;
use effects::{Effects, predict};
pub(crate) use guide::Expect;
use guide::Guide;

/// How a search goes about.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Different settings that are tried, at most.
    pub trials: usize,
    /// Rounds in which each of them is measured before the finals.
    pub rounds: u32,
    /// Rounds of the finals, at most.
    pub finals: u32,
}

impl Budget {
    /// What finds the best within 5 % where trials agree within a tenth or so.
    pub const USUAL: Self = Self { trials: 10, rounds: 2, finals: 6 };
}

/// What counts as the same: figures that differ by less than 5 %.
pub(crate) const SAME: f64 = 0.048_790_164; // the logarithm of 1.05

/// Costs that differ by no more are one.
const TIE: f64 = 1e-6;

#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) point: Point,
    pub(crate) rounds: Vec<(u32, Figures)>,
}

impl Trial {
    pub(crate) fn mean(&self) -> Figures {
        Figures::mean(self.rounds.iter().map(|(_, figures)| figures))
    }
}

#[derive(Clone, Debug)]
pub struct SearchResult {
    pub(crate) trials: Vec<Trial>,
    pub(crate) best: usize,
    pub(crate) rivals: Vec<usize>,
    /// What a model expected of each trial, where it could say.
    pub(crate) expected: Vec<Option<Figures>>,
}

pub(crate) type Measure<'a> = dyn FnMut(&Point) -> Result<Figures> + 'a;

struct Search<'a> {
    space: &'a Space,
    goal: &'a Goal,
    budget: Budget,
    trials: Vec<Trial>,
    effects: Effects,
    round: u32,
    expect: Option<&'a Expect<'a>>,
    guide: Guide,
}

/// How settings are chosen for trials.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// Few of them, where the best is to be expected.
    Guided(Budget),
    /// All of them, in turns, so many times.
    Exhaustive(u32),
}

/// Searches; where there is a model, what it expects says where to begin.
pub(crate) fn search(
    space: &Space,
    goal: &Goal,
    method: Method,
    expect: Option<&Expect<'_>>,
    measure: &mut Measure<'_>,
) -> Result<SearchResult> {
    let budget = match method {
        Method::Guided(budget) => {
            // What is special, and how it is: with that others are compared.
            let special = space.specials.len() + usize::from(matches!(space.present, Point::At(_)));
            Budget { trials: budget.trials.max(special), ..budget }
        }
        Method::Exhaustive(rounds) => Budget { trials: usize::MAX, rounds, finals: 0 },
    };
    let (trials, effects) = (Vec::new(), Effects::default());
    let guide = Guide::default();
    let mut search = Search { space, goal, budget, trials, effects, round: 0, expect, guide };
    if let Method::Exhaustive(_) = method {
        search.try_points(space.all(), measure)?;
        return search.finals(measure);
    }
    if let (Some(expect), Some(axis)) = (expect, space.axes.first()) {
        let places = (0..axis.len()).map(|at| search.on_first_axis(at));
        search.guide = Guide::new(places, expect);
    }
    search.survey(measure)?;
    search.follow_first_axis(measure)?;
    for axis in 1..space.axes.len() {
        search.follow_axis(axis, measure)?;
    }
    search.refine(measure)?;
    search.finals(measure)
}

impl Search<'_> {
    fn cost(&self, trial: usize) -> f64 {
        self.goal.cost(&self.trials[trial].mean())
    }

    fn best(&self, wanted: impl Fn(&Point) -> bool) -> Option<usize> {
        let wanted = (0..self.trials.len()).filter(|at| wanted(&self.trials[*at].point));
        wanted.min_by(|a, b| self.cost(*a).total_cmp(&self.cost(*b)))
    }

    fn left(&self) -> usize {
        self.budget.trials.saturating_sub(self.trials.len())
    }

    fn is_tried(&self, point: &Point) -> bool {
        let change = self.space.change(point);
        self.trials.iter().any(|trial| {
            trial.point == *point || !change.is_empty() && self.space.change(&trial.point) == change
        })
    }

    /// Measures points in turns, each new one as often as the budget says.
    fn try_points(&mut self, mut points: Vec<Point>, measure: &mut Measure<'_>) -> Result<()> {
        for _ in 0..self.budget.rounds {
            for point in &points {
                let figures = measure(point)?;
                let known = self.trials.iter().position(|trial| trial.point == *point);
                let at = known.unwrap_or_else(|| {
                    self.trials.push(Trial { point: point.clone(), rounds: Vec::new() });
                    self.trials.len() - 1
                });
                self.trials[at].rounds.push((self.round, figures));
            }
            self.round += 1;
            points.reverse();
        }
        Ok(())
    }

    fn try_beside_best(&mut self, point: Point, measure: &mut Measure<'_>) -> Result<()> {
        let best = self.best(|_| true).map(|best| self.trials[best].point.clone());
        self.try_points(best.into_iter().chain([point]).collect(), measure)
    }

    /// The first look: what is special, and three points of the first axis.
    fn survey(&mut self, measure: &mut Measure<'_>) -> Result<()> {
        let mut points: Vec<Point> = (0..self.space.specials.len()).map(Point::Special).collect();
        if let Some(axis) = self.space.axes.first() {
            let last = axis.len() - 1;
            let usual = [0, last / 3, 2 * last / 3];
            let places = self.guide.places(last, self.goal).unwrap_or(usual);
            let places = places.map(|at| self.on_first_axis(at));
            // How it is, first: that is what others are compared with.
            for point in [self.space.present.clone()].into_iter().chain(places) {
                if !points.contains(&point) {
                    points.push(point);
                }
            }
        }
        self.by_expectation(&mut points);
        points.truncate(self.budget.trials);
        self.try_points(points, measure)
    }

    fn on_first_axis(&self, at: usize) -> Point {
        let mut places = vec![0; self.space.axes.len()];
        places[0] = at;
        Point::At(places)
    }

    fn known(&self) -> Vec<(usize, Figures)> {
        let on_axis = |trial: &Trial| match &trial.point {
            Point::At(places) if places[1..].iter().all(|place| *place == 0) => {
                Some((places[0], trial.mean()))
            }
            _ => None,
        };
        let mut known: Vec<(usize, Figures)> = self.trials.iter().filter_map(on_axis).collect();
        known.sort_by_key(|(place, _)| *place);
        known
    }

    fn follow_first_axis(&mut self, measure: &mut Measure<'_>) -> Result<()> {
        let Some(axis) = self.space.axes.first() else { return Ok(()) };
        let length = axis.len();
        // The other axes have their trials, if they exist.
        let reserved = self.reserved(1);
        while self.left() > reserved {
            let known = self.known();
            let guided = self.guide.next(&known, self.goal);
            let next = guided.unwrap_or_else(|| next_place(&known, length, self.goal));
            let Some(next) = next else { break };
            self.try_beside_best(self.on_first_axis(next), measure)?;
        }
        Ok(())
    }

    /// Tries what the effects of all axes together let expect: where a limit leaves room for one
    /// hold only, a shorter one on the first axis may make room for another that is worth more.
    fn refine(&mut self, measure: &mut Measure<'_>) -> Result<()> {
        let points = if self.effects.is_empty() { Vec::new() } else { self.space.all() };
        while self.left() > 0 {
            let Some(best) = self.best(|_| true) else { break };
            let known = self.known();
            let untried = points.iter().filter(|point| !self.is_tried(point));
            let expected = untried.filter_map(|point| {
                let figures = self.effects.expected(point, &known)?;
                Some((point, self.goal.cost(&figures)))
            });
            let promising = expected.min_by(|a, b| a.1.total_cmp(&b.1));
            let least = self.cost(best);
            let Some((point, _)) = promising.filter(|(_, cost)| *cost < least - SAME / 2.0) else {
                break;
            };
            self.try_beside_best(point.clone(), measure)?;
        }
        Ok(())
    }

    fn reserved(&self, from: usize) -> usize {
        (from..self.space.axes.len()).map(|axis| self.space.trials_of(axis)).sum()
    }

    /// Goes along another axis from the best point, as long as that helps, or to its end if the
    /// user has named it.
    fn follow_axis(&mut self, axis: usize, measure: &mut Measure<'_>) -> Result<()> {
        let Some(best) = self.best(|point| matches!(point, Point::At(_))) else { return Ok(()) };
        let Point::At(from) = self.trials[best].point.clone() else { return Ok(()) };
        let later = self.reserved(axis + 1);
        let mut before = self.cost(best);
        // From the far end, which is the mildest.
        for place in (1..self.space.axes[axis].len()).rev() {
            if self.left() <= later {
                break;
            }
            let mut places = from.clone();
            places[axis] = place;
            let point = Point::At(places);
            if self.is_tried(&point) {
                continue;
            }
            self.try_beside_best(point, measure)?;
            let last = self.trials.len() - 1;
            let (here, there) = (self.trials[last].mean(), self.trials[best].mean());
            self.effects.learn(axis, place, from[axis], &there, &here);
            let cost = self.cost(last);
            if cost > before - SAME && !self.space.is_named(axis) {
                break;
            }
            before = before.min(cost);
        }
        Ok(())
    }
}

/// Where on the first axis to look next; `None` if there is nothing to be expected of any place.
fn next_place(known: &[(usize, Figures)], length: usize, goal: &Goal) -> Option<usize> {
    let cost = |figures: &Figures| goal.cost(figures);
    let least = known.iter().map(|(_, figures)| cost(figures)).min_by(f64::total_cmp)?;
    let is_known = |place: usize| known.iter().any(|(at, _)| *at == place);
    let unknown = (0..length).filter(|place| !is_known(*place));
    let predicted = unknown.map(|place| (place, cost(&predict(known, place))));
    let promising = predicted.min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((place, _)) = promising.filter(|(_, cost)| *cost < least - SAME / 2.0) {
        return Some(place);
    }
    // Nothing better is predicted; but a prediction is only as good as what is known near the best.
    // Where several are as good, the widest gap beside one of them counts.
    let best = known.iter().filter(|(_, figures)| cost(figures) <= least + TIE);
    let gaps = best.flat_map(|(best, _)| {
        let best = *best;
        let below = known.iter().map(|(at, _)| *at).filter(|at| *at < best).max();
        let above = known.iter().map(|(at, _)| *at).filter(|at| *at > best).min();
        let below = below.map(|at| (best - at, at.midpoint(best)));
        let above = above.map_or_else(
            || (best + 1 < length).then(|| (length - best, best.midpoint(length))),
            |at| Some((at - best, (at + best).div_ceil(2))),
        );
        below.into_iter().chain(above)
    });
    let (gap, place) = gaps.max_by_key(|(gap, _)| *gap)?;
    (gap > 1 && !is_known(place)).then_some(place)
}

#[cfg(test)]
mod tests;
