//! A recommendation in sentences.

use super::{Recommendation, TrialRow, Verified};
use crate::figures::{Figures, Metric};
use crate::goal::{Goal, Miss};
use crate::trial::PREFERS;

/// How the pick compares by the goal. A ratio of goals whose limits are missed weighs the misses,
/// and one of figures near zero is arbitrary: there the limits and the figures say it.
pub(super) fn by_goal(
    goal: &Goal,
    before: &Figures,
    after: &Figures,
    [low, _, high]: [f64; 3],
) -> Option<String> {
    let limits = |figures: &Figures| {
        let misses: Vec<String> = goal.misses(figures).iter().map(Miss::to_string).collect();
        if misses.is_empty() { "all limits hold".to_owned() } else { misses.join("; ") }
    };
    if !(goal.misses(before).is_empty() && goal.misses(after).is_empty()) {
        return Some(format!("as it was, {}; with the pick, {}", limits(before), limits(after)));
    }
    let (was, is) = (goal.aimed(before)?, goal.aimed(after)?);
    // What two digits cannot tell from nothing has no ratio worth saying.
    let shown = (0.01..99.0).contains(&low) && high < 99.0 && was >= 0.01 && is >= 0.01;
    Some(match shown {
        true => format!("{low:.2} to {high:.2} times what it was (95 %)"),
        false => format!("from {} to {}", goal.aim.1.with_unit(was), goal.aim.1.with_unit(is)),
    })
}

impl Recommendation {
    /// What the model expected, and by how much it was off, of figures that the goal names.
    fn of_model(&self) -> Option<String> {
        let machine = self.subject.model.as_ref()?;
        let pick = &self.trials[self.pick];
        let of_metric = |metric: Metric| {
            let off = |row: &TrialRow| {
                let (is, was) = (row.figures.get(metric)?, row.expected.as_ref()?.get(metric)?);
                (was > 0.0).then(|| 100.0 * (is / was - 1.0))
            };
            let off: Vec<f64> = self.trials.iter().filter_map(off).collect();
            let least = off.iter().copied().min_by(f64::total_cmp)?;
            let most = off.iter().copied().max_by(f64::total_cmp)?;
            let expected = pick.expected.as_ref().and_then(|figures| figures.get(metric));
            let of_pick = expected.map_or_else(String::new, |expected| {
                let measured = metric.cell(pick.figures.get(metric));
                format!(" of {} for the pick, measured {measured}", metric.with_unit(expected))
            });
            Some(format!(
                "{metric}{of_pick} ({} settings: measured {least:+.0} to {most:+.0} % of that)",
                off.len()
            ))
        };
        let is_named = |metric: &Metric| {
            let is_latency = *metric == Metric::P50 && self.goal.contains("latency");
            is_latency || self.goal.contains(metric.name())
        };
        let metrics = self.metrics().into_iter().filter(is_named);
        let each: Vec<String> = metrics.filter_map(of_metric).collect();
        let what =
            if each.is_empty() { "nothing of what the goal names".into() } else { each.join("; ") };
        Some(format!("the model ({machine}) expected {what}"))
    }

    /// Whether interrupts were suspended where they were to be, and what the pick takes of the
    /// server.
    fn of_suspension(&self) -> Vec<String> {
        let sentence = |(at, row): (usize, &TrialRow)| {
            let share = row.figures.get(Metric::Polled)?;
            // The table has 0 for less.
            if share < 0.005 {
                return Some(format!(
                    "{}: no program polled for its packets, so no interrupt was suspended; the \
                     command has to start a server that prefers busy polling where {PREFERS} is 1",
                    row.setting
                ));
            }
            let found = Metric::Polled.with_unit(share);
            (at == self.pick).then(|| {
                format!(
                    "under the pick, programs found {found} of the packets by polls of their own: \
                     start the server with {PREFERS}=1 from now on"
                )
            })
        };
        self.trials.iter().enumerate().filter_map(sentence).collect()
    }

    /// What it says, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let pick = &self.trials[self.pick];
        let mut sentences = vec![format!(
            "pick: {}, after {} trials and {} measurements",
            pick.setting,
            self.trials.len(),
            self.subject.measurements
        )];
        if self.present == Some(self.pick) {
            sentences.push("nothing that was tried is better than how the device is".into());
        }
        sentences.extend(self.trials.iter().filter_map(|row| {
            let otherwise = row.otherwise.as_ref()?;
            Some(format!("{} was not measured as asked: {otherwise}", row.setting))
        }));
        if self.never_changed {
            sentences.push(
                "warning: the number that counts was the same in all measurements, so it says \
                 nothing of the settings; name another one with --metric"
                    .into(),
            );
        }
        if !self.limits.goal_met {
            let missed = self.limits.missed.join("; ");
            sentences.push(format!("no setting meets the goal; the pick is the nearest: {missed}"));
        }
        sentences.extend(self.price.clone());
        sentences.extend(self.of_model());
        sentences.extend(self.of_suspension());
        if let Some(Verified { before, after, by_goal, .. }) = &self.verified {
            let figures: Vec<String> = self
                .metrics()
                .into_iter()
                .filter_map(|metric| {
                    let (before, after) = (before.get(metric)?, after.get(metric)?);
                    let worth = [Metric::P50, Metric::P99, Metric::Cpu, Metric::Interrupts];
                    let is_named = worth.contains(&metric) || !metric.is_latency();
                    is_named.then(|| {
                        format!(
                            "{metric} {} -> {}",
                            metric.cell(Some(before)),
                            metric.with_unit(after)
                        )
                    })
                })
                .collect();
            sentences
                .push(format!("measured again, in turns with how it was: {}", figures.join(", ")));
            sentences.extend(by_goal.as_ref().map(|words| format!("by the goal: {words}")));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(goal: &str, was: &[(Metric, f64)], is: &[(Metric, f64)], low: f64) -> String {
        let figures = |of: &[(Metric, f64)]| Figures(of.iter().copied().collect());
        let ratio = [low, 1.2 * low, 1.5 * low];
        by_goal(&goal.parse().unwrap(), &figures(was), &figures(is), ratio).unwrap()
    }

    #[test]
    fn a_ratio_is_stated_only_where_it_means_something() {
        use Metric::{Cpu, P50, P99};
        let text = words("min latency", &[(P50, 200.0)], &[(P50, 100.0)], 0.4);
        assert_eq!(text, "0.40 to 0.60 times what it was (95 %)");
        // No base to be a multiple of.
        let text = words("min cpu", &[(Cpu, 0.0)], &[(Cpu, 0.2)], 150.0);
        assert_eq!(text, "from 0.00 cores to 0.20 cores");
        let text = words("min latency", &[(P50, 9e5)], &[(P50, 100.0)], 1e-4);
        assert_eq!(text, "from 900000.0 us to 100.0 us");
        // A limit that was missed makes the ratio of the goals meaningless.
        let (was, is) = ([(P99, 300.0), (Cpu, 0.5)], [(P99, 100.0), (Cpu, 0.5)]);
        let text = words("min cpu, p99 < 200us", &was, &is, 1e-6);
        assert_eq!(
            text,
            "as it was, p99 is 300.0 us, not < 200.0 us (50 % too much); with the pick, all \
             limits hold"
        );
    }
}
