//! What `earmark tune` has found: as data for scripts, and in words and tables for people.

mod table;
mod words;

use schemars::JsonSchema;
use serde::Serialize;

use super::answers::Answers;
use super::figures::{Figures, Metric};
use super::front::{front, price};
use super::goal::{Goal, Miss, Sense};
use super::output::Measurand;
use super::search::{Doubt, Point, SearchResult, Space, Trial};
use super::setting::{Setting, State, Value};
use super::transaction::SettingResult;
use bench::environment::Environment;
use words::by_goal;

const PRESENT: &str = "as it is";

#[derive(Debug, Serialize, JsonSchema)]
pub struct Subject {
    /// The interface, or the port of a lab.
    pub device: String,
    /// The driver of the device, as `ethtool -i` has it.
    pub driver: String,
    /// What was measured: a workload, or a command.
    pub workload: String,
    /// The number of the user's command that counts.
    pub measurand: Option<Measurand>,
    /// The machine whose model said where to begin.
    pub model: Option<String>,
    /// The settings before.
    pub before: State,
    /// Where and how it was measured.
    pub environment: Environment,
    /// How many there were.
    pub(crate) measurements: usize,
}

/// The pick, and what it rests on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Recommendation {
    /// What was tuned, and where it was measured.
    #[serde(flatten)]
    pub subject: Subject,
    /// Whether the command printed the same number each time.
    pub(crate) never_changed: bool,
    /// The goal, as the user wrote it.
    pub goal: String,
    /// Every setting that was tried, in the order of the first trial.
    pub trials: Vec<TrialRow>,
    /// The number of the setting that was in force among the trials.
    pub present: Option<usize>,
    /// The number of the pick.
    pub pick: usize,
    /// The numbers of those that may be as good.
    pub(crate) rivals: Vec<usize>,
    /// Whether the pick meets the goal.
    #[serde(flatten)]
    pub limits: Limits,
    /// What never waiting costs, if that is the pick.
    pub(crate) price: Option<String>,
    /// The pick, measured again beside what was in force.
    pub(crate) verified: Option<Verified>,
    /// Whether the pick is in force.
    pub applied: bool,
    /// What the device took of it.
    pub took: Vec<SettingResult>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct TrialRow {
    /// The change that was tried.
    pub(crate) setting: String,
    /// How often it was measured.
    pub(crate) rounds: usize,
    /// Geometric means over the rounds, by metric.
    pub(crate) figures: Figures,
    /// What the model expected.
    pub(crate) expected: Option<Figures>,
    /// Whether no other one is better in latency and in its price.
    pub(crate) on_front: bool,
    /// What its figures do not meet a limit of the goal in.
    pub(crate) misses: Vec<String>,
    /// Why the device did not take it.
    pub(crate) refused: Option<String>,
    /// What the device made of it, if not what was asked.
    pub(crate) otherwise: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Limits {
    /// Whether the pick meets all limits of the goal.
    pub goal_met: bool,
    /// Limits that it does not meet, in words.
    pub(crate) missed: Vec<String>,
    /// The same as numbers.
    pub misses: Vec<MissRow>,
}

impl Limits {
    pub fn of(goal: &Goal, pick: &Figures) -> Self {
        let misses = goal.misses(pick);
        Self {
            goal_met: misses.is_empty(),
            missed: misses.iter().map(Miss::to_string).collect(),
            misses: misses.iter().map(MissRow::from).collect(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct MissRow {
    /// What the limit is about.
    pub(crate) metric: Metric,
    /// `<` or `>`: where the value should be.
    pub(crate) sign: &'static str,
    /// The limit, in the unit of the metric.
    pub(crate) limit: f64,
    /// What was measured; `None` if it was not.
    pub(crate) value: Option<f64>,
    /// By how much it is missed, as a share of the limit.
    pub(crate) by: Option<f64>,
}

impl From<&Miss> for MissRow {
    fn from(miss: &Miss) -> Self {
        let Miss { limit, value } = *miss;
        let sign = if limit.direction == Sense::Min { "<" } else { ">" };
        Self { metric: limit.metric, sign, limit: limit.bound, value, by: miss.by() }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Verified {
    /// What was in force before.
    pub(crate) before: Figures,
    /// Those of the pick.
    pub(crate) after: Figures,
    /// How much worse the pick is by the goal: at least, measured, at most.
    pub(crate) ratio: Option<[f64; 3]>,
    /// The same in words.
    pub(crate) by_goal: Option<String>,
}

impl Verified {
    pub(crate) fn of(before: &Trial, after: &Trial, goal: &Goal, doubt: Option<Doubt>) -> Self {
        let ratio = doubt.map(|doubt| [doubt.low, doubt.mean, doubt.high].map(f64::exp));
        let (before, after) = (before.mean(), after.mean());
        let by_goal = ratio.and_then(|ratio| by_goal(goal, &before, &after, ratio));
        Self { before, after, ratio, by_goal }
    }
}

impl Recommendation {
    /// Of a search, with what the device said to its points. The pick is not verified, nor in
    /// force.
    pub fn new(
        subject: Subject,
        space: &Space,
        goal: &Goal,
        found: &SearchResult,
        answers: &Answers,
    ) -> Self {
        Self {
            never_changed: subject.measurand.is_some() && never_changed(&found.trials),
            goal: goal.to_string(),
            trials: Self::rows(space, goal, found, answers),
            present: found.trials.iter().position(|trial| trial.point == space.present),
            pick: found.best,
            rivals: found.rivals.clone(),
            limits: Limits::of(goal, &found.trials[found.best].mean()),
            price: Self::price_of(space, found, &subject.before),
            subject,
            verified: None,
            applied: false,
            took: Vec::new(),
        }
    }

    fn rows(space: &Space, goal: &Goal, found: &SearchResult, answers: &Answers) -> Vec<TrialRow> {
        let figures: Vec<Figures> = found.trials.iter().map(Trial::mean).collect();
        let front = front(&figures, goal.latency());
        let expected = found.expected.iter().cloned().chain(std::iter::repeat(None));
        let row = |(((trial, figures), on_front), expected): (((&Trial, Figures), bool), _)| {
            let change = space.change(&trial.point);
            let said = |to: &[(Point, String)]| {
                let mut those = to.iter().filter(|(point, _)| *point == trial.point);
                those.next().map(|(_, words)| words.clone())
            };
            let misses = goal.misses(&figures);
            TrialRow {
                misses: misses.iter().map(|miss| miss.limit.metric.name().to_owned()).collect(),
                setting: if change.is_empty() { PRESENT.into() } else { change.to_string() },
                rounds: trial.rounds.len(),
                figures,
                expected,
                on_front,
                refused: said(&answers.refused),
                otherwise: said(&answers.otherwise),
            }
        };
        found.trials.iter().zip(figures).zip(front).zip(expected).map(row).collect()
    }

    /// What the pick costs, if it never waits: stated whenever it is recommended, whatever the
    /// goal.
    fn price_of(space: &Space, found: &SearchResult, before: &State) -> Option<String> {
        let never_waits = |point: &Point| {
            let change = space.change(point);
            let value = |setting| change.get(setting).or_else(|| before.get(setting));
            let number = |setting| value(setting).and_then(Value::number).unwrap_or(0);
            let deferral = [Setting::GroFlushTimeout, Setting::NapiDeferHardIrqs];
            value(Setting::RxUsecs) == Some(&Value::Number(0))
                && value(Setting::AdaptiveRx) != Some(&Value::Switch(true))
                && deferral.iter().any(|setting| number(*setting) == 0)
        };
        let pick = &found.trials[found.best];
        if !never_waits(&pick.point) {
            return None;
        }
        // Compared with the cheapest that waits, since that is the choice.
        let cost = |trial: &&Trial| trial.mean().get(Metric::Interrupts).unwrap_or(f64::INFINITY);
        let others = found.trials.iter().filter(|trial| !never_waits(&trial.point));
        let other = others.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let name = other.map(|other| space.change(&other.point)).filter(|name| !name.is_empty());
        let name = name.map_or_else(|| "what was in force".into(), |name| format!("`{name}`"));
        Some(price(&pick.mean(), &other.map(Trial::mean).unwrap_or_default(), &name))
    }

    /// Whether the pick is worse beyond doubt, measured again, than how the device was.
    pub fn is_worse(&self) -> bool {
        self.verified.as_ref().and_then(|it| it.ratio).is_some_and(|[at_least, ..]| at_least > 1.0)
    }
}

/// Whether a command printed the same number in all of several measurements.
fn never_changed(trials: &[Trial]) -> bool {
    let rounds = trials.iter().flat_map(|trial| &trial.rounds);
    let mut values = rounds.filter_map(|(_, figures)| figures.get(Metric::Value));
    let Some(first) = values.next() else { return false };
    let others: Vec<f64> = values.collect();
    !others.is_empty() && others.iter().all(|value| value.total_cmp(&first).is_eq())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(space: &Space, pick: &str) -> SearchResult {
        let trial = |point: &Point, interrupts: f64| Trial {
            point: point.clone(),
            rounds: vec![(
                0,
                Figures([(Metric::Interrupts, interrupts), (Metric::P50, 9.0)].into()),
            )],
        };
        let all = space.all();
        let trials: Vec<Trial> = all.iter().map(|point| trial(point, 100.0)).collect();
        let best = all.iter().position(|point| space.change(point).to_string() == pick).unwrap();
        SearchResult { trials, best, rivals: vec![], expected: vec![] }
    }

    #[test]
    fn rx_usecs_0_is_never_recommended_without_its_price() {
        let state: State = "adaptive-rx off rx-usecs 0 rx-frames 0".parse().unwrap();
        let space = Space::of(&state, 64);
        for pick in ["rx-usecs 0", "rx-usecs 0 rx-frames 8"] {
            let price = Recommendation::price_of(&space, &found(&space, pick), &state).unwrap();
            assert!(price.contains("interrupts/s"), "{pick}: {price}");
        }
        for pick in ["rx-usecs 8", "adaptive-rx on"] {
            assert_eq!(
                Recommendation::price_of(&space, &found(&space, pick), &state),
                None,
                "{pick}"
            );
        }
    }

    #[test]
    fn what_is_printed_is_as_the_schema_says() {
        let before: State = "adaptive-rx off rx-usecs 30 rx-frames 0".parse().unwrap();
        let (space, goal) = (Space::of(&before, 64), "min interrupts, p50 < 5us".parse().unwrap());
        let found = found(&space, "rx-usecs 0");
        let subject = Subject {
            device: "eth0".into(),
            driver: "ice".into(),
            workload: "rr".into(),
            measurand: None,
            model: None,
            before,
            environment: worlds::environment::read("live"),
            measurements: 1,
        };
        let trial = &found.trials[found.best];
        let doubt = Doubt { low: 0.0, mean: 0.1, high: 0.2, rounds: 3 };
        let took = SettingResult {
            setting: Setting::RxUsecs,
            before: Some(Value::Number(30)),
            asked: None,
            now: Some(Value::Switch(true)),
            verdict: crate::transaction::Verdict::AlongWith,
            by: "ethtool",
        };
        let recommendation = Recommendation {
            verified: Some(Verified::of(trial, trial, &goal, Some(doubt))),
            took: vec![took],
            ..Recommendation::new(subject, &space, &goal, &found, &Answers::default())
        };
        assert!(!recommendation.limits.misses.is_empty() && recommendation.price.is_some());
        report::json::checks::conforms(&recommendation);
    }

    #[test]
    fn a_number_that_never_changes_is_noticed() {
        let trial = |values: &[f64]| Trial {
            point: Point::Special(0),
            rounds: values.iter().map(|it| (0, Figures([(Metric::Value, *it)].into()))).collect(),
        };
        assert!(never_changed(&[trial(&[16_384.0]), trial(&[16_384.0, 16_384.0])]));
        assert!(!never_changed(&[trial(&[5.0, 5.0]), trial(&[5.1])]));
        assert!(!never_changed(&[trial(&[5.0])]) && !never_changed(&[trial(&[])]));
    }
}
