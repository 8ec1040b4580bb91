//! What figures are to be expected of points that were not tried: along the first axis, and with
//! what other axes change.
//!
//! Times add up: a hold of 20 us more is 20 us more, whatever else there is. Rates and CPU time are
//! taken to be multiplied. Neither is exact, which is why an expectation only says what to try.

use std::collections::BTreeMap;

use super::space::Point;
use crate::figures::{Figures, Metric, linear, logarithm};

/// What has been learnt of places on axes.
#[derive(Debug, Default)]
pub(super) struct Effects(BTreeMap<(usize, usize), BTreeMap<Metric, f64>>);

impl Effects {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Learns of `place` on `axis` from figures there, and those of a point that has `before` on
    /// that axis and is the same otherwise.
    pub(super) fn learn(
        &mut self,
        axis: usize,
        place: usize,
        before: usize,
        there: &Figures,
        here: &Figures,
    ) {
        let known = self.0.get(&(axis, before)).cloned().unwrap_or_default();
        let effect = here.0.iter().filter_map(|(metric, here)| {
            let step = scaled(*metric, *here) - scaled(*metric, there.get(*metric)?);
            Some((*metric, step + known.get(metric).unwrap_or(&0.0)))
        });
        self.0.insert((axis, place), effect.collect());
    }

    /// The figures to be expected of a point, where `known` are some of the first axis; `None`
    /// where it has a place that nothing is known of.
    pub(super) fn expected(&self, point: &Point, known: &[(usize, Figures)]) -> Option<Figures> {
        let Point::At(places) = point else { return None };
        let (first, others) = places.split_first()?;
        let places = others.iter().enumerate().filter(|(_, place)| **place != 0);
        let effects: Vec<&BTreeMap<Metric, f64>> =
            places.map(|(axis, place)| self.0.get(&(axis + 1, *place))).collect::<Option<_>>()?;
        let expected = predict(known, *first).0.into_iter().map(|(metric, value)| {
            let shift: f64 = effects.iter().filter_map(|effect| effect.get(&metric)).sum();
            (metric, unscaled(metric, scaled(metric, value) + shift))
        });
        Some(Figures(expected.collect()))
    }
}

/// The figures to be expected at a place: between two that are known, on the straight line between
/// their logarithms; beyond all of them, on the line of the last two.
pub(super) fn predict(known: &[(usize, Figures)], place: usize) -> Figures {
    let above = known.iter().position(|(at, _)| *at > place).unwrap_or(known.len());
    let pair = above.clamp(1, known.len().max(2) - 1);
    let (Some((from, low)), Some((to, high))) = (known.get(pair - 1), known.get(pair)) else {
        return known.first().map(|(_, figures)| figures.clone()).unwrap_or_default();
    };
    let share = (place as f64 - *from as f64) / (*to as f64 - *from as f64);
    let figures = low.0.iter().filter_map(|(metric, low)| {
        let (low, high) = (logarithm(*low), logarithm(high.get(*metric)?));
        Some((*metric, linear(low + share * (high - low))))
    });
    Figures(figures.collect())
}

fn scaled(metric: Metric, value: f64) -> f64 {
    if metric.is_latency() { value } else { logarithm(value) }
}

fn unscaled(metric: Metric, value: f64) -> f64 {
    if metric.is_latency() { value.max(0.0) } else { linear(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_and_rates_are_multiplied() {
        let figures =
            |p50: f64, rate: f64| Figures([(Metric::P50, p50), (Metric::Interrupts, rate)].into());
        let known = [(0, figures(50.0, 10_000.0)), (4, figures(50.0, 10_000.0))];
        let mut effects = Effects::default();
        assert!(effects.is_empty());
        effects.learn(1, 2, 0, &figures(50.0, 10_000.0), &figures(70.0, 5_000.0));
        effects.learn(1, 1, 2, &figures(70.0, 5_000.0), &figures(60.0, 8_000.0));
        effects.learn(2, 1, 0, &figures(80.0, 4_000.0), &figures(85.0, 1_000.0));
        let at = |places: &[usize]| effects.expected(&Point::At(places.to_vec()), &known);
        let both = at(&[4, 2, 1]).unwrap();
        assert!((both.get(Metric::P50).unwrap() - 75.0).abs() < 1e-6, "{both:?}");
        assert!((both.get(Metric::Interrupts).unwrap() - 1_250.0).abs() < 0.1, "{both:?}");
        let other = at(&[0, 1, 0]).unwrap();
        assert!((other.get(Metric::P50).unwrap() - 60.0).abs() < 1e-6, "{other:?}");
        assert_eq!(at(&[0, 3, 0]), None);
        assert_eq!(effects.expected(&Point::Special(0), &known), None);
    }
}
