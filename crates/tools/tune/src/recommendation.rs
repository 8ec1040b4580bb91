//! What `earmark tune` has found: for scripts, for people, and as a page.

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
use report::terminal::number;
use report::terminal::{Table, Width};
use report::{self, Cell, Report, TradeoffChart, TradeoffPoint};

/// What the setting that was in force at the start is called.
const PRESENT: &str = "as it is";

/// What was tuned.
#[derive(Debug)]
pub struct Subject {
    /// The user's name for the device.
    pub device: String,
    /// What drives it.
    pub driver: String,
    /// The workload, by its name.
    pub workload: String,
    /// The number of the user's command that counts.
    pub measurand: Option<Measurand>,
    /// How the device was.
    pub before: State,
    /// Where and how it was measured.
    pub environment: Environment,
    /// How many measurements that were.
    pub measurements: usize,
}

/// The pick, and what it rests on.
#[derive(Debug, Serialize)]
pub struct Recommendation {
    /// The device.
    pub device: String,
    /// What drives it.
    pub driver: String,
    /// The workload, by its name.
    pub workload: String,
    /// The number of the user's command that counts.
    pub measurand: Option<Measurand>,
    /// Whether that number was the same in all measurements, under whatever setting.
    pub never_changed: bool,
    /// The goal, as the user wrote it.
    pub goal: String,
    /// How the device was.
    pub before: State,
    /// Every setting that was tried, in the order of the first trial.
    pub trials: Vec<TrialRow>,
    /// How many measurements that were.
    pub measurements: usize,
    /// The number of the setting that was in force among the trials.
    pub present: Option<usize>,
    /// The number of the pick.
    pub pick: usize,
    /// Settings that may be as good, by their numbers.
    pub rivals: Vec<usize>,
    /// Whether the pick meets the goal.
    #[serde(flatten)]
    pub limits: Limits,
    /// What never waiting costs, if that is the pick.
    pub price: Option<String>,
    /// What was measured afterwards.
    pub verified: Option<Verified>,
    /// Whether the pick is in force.
    pub applied: bool,
    /// What the device took of it.
    pub took: Vec<SettingResult>,
    /// Where and how it was measured.
    pub environment: Environment,
}

/// One setting that was tried.
#[derive(Debug, Serialize)]
pub struct TrialRow {
    /// The setting, as `earmark apply` takes it.
    pub setting: String,
    /// How often it was measured.
    pub rounds: usize,
    /// What was measured: geometric means over the rounds.
    pub figures: Figures,
    /// No other one beats it in everything.
    pub on_front: bool,
    /// Why the device refused it, if it did.
    pub refused: Option<String>,
    /// What the device made of it, if something else was in force than what it was asked for.
    pub otherwise: Option<String>,
}

/// Whether the pick meets all limits of the goal.
#[derive(Debug, Serialize)]
pub struct Limits {
    /// Whether it meets all of them.
    pub goal_met: bool,
    /// Limits that it does not meet, in words.
    pub missed: Vec<String>,
    /// The same as data.
    pub misses: Vec<MissRow>,
}

impl Limits {
    /// With these figures of the pick.
    pub fn of(goal: &Goal, pick: &Figures) -> Self {
        let misses = goal.misses(pick);
        Self {
            goal_met: misses.is_empty(),
            missed: misses.iter().map(Miss::to_string).collect(),
            misses: misses.iter().map(MissRow::from).collect(),
        }
    }
}

/// A limit that the pick does not meet.
#[derive(Debug, Serialize)]
pub struct MissRow {
    /// The metric that is limited.
    pub metric: Metric,
    /// `<` or `>`.
    pub sign: &'static str,
    /// The limit, in the unit of the figures.
    pub limit: f64,
    /// What was measured; `None` if it was not.
    pub value: Option<f64>,
    /// The distance of the two, as a share of the limit.
    pub by: Option<f64>,
}

impl From<&Miss> for MissRow {
    fn from(miss: &Miss) -> Self {
        let Miss { limit, value } = *miss;
        let sign = if limit.direction == Sense::Min { "<" } else { ">" };
        Self { metric: limit.metric, sign, limit: limit.bound, value, by: miss.by() }
    }
}

/// A pick against what was there before, measured in turns after the search.
#[derive(Debug, Serialize)]
pub struct Verified {
    /// How it was.
    pub before: Figures,
    /// How it is.
    pub after: Figures,
    /// By how much the goal is missed by more than before: a ratio, at least, measured, at most.
    pub ratio: Option<[f64; 3]>,
    /// The same in words: as a ratio where one says something, else as the two figures.
    pub by_goal: Option<String>,
}

impl Verified {
    /// Of trials that shared their rounds.
    pub fn of(before: &Trial, after: &Trial, goal: &Goal, doubt: Option<Doubt>) -> Self {
        let ratio = doubt.map(|doubt| [doubt.low, doubt.mean, doubt.high].map(f64::exp));
        let (before, after) = (before.mean(), after.mean());
        let by_goal = ratio.and_then(|ratio| by_goal(goal, &before, &after, ratio));
        Self { before, after, ratio, by_goal }
    }
}

/// How the pick compares by the goal. A ratio of goals whose limits are missed weighs the misses,
/// and one of figures near zero is arbitrary: there the limits and the figures say it.
fn by_goal(
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
    /// Of a search, with what the device said to its points. The pick is not verified, nor in
    /// force.
    pub fn new(
        subject: Subject,
        space: &Space,
        goal: &Goal,
        found: &SearchResult,
        answers: &Answers,
    ) -> Self {
        let Subject { device, driver, workload, measurand, before, environment, measurements } =
            subject;
        Self {
            device,
            driver,
            workload,
            never_changed: measurand.is_some() && never_changed(&found.trials),
            measurand,
            goal: goal.to_string(),
            trials: Self::rows(space, goal, found, answers),
            measurements,
            present: found.trials.iter().position(|trial| trial.point == space.present),
            pick: found.best,
            rivals: found.rivals.clone(),
            limits: Limits::of(goal, &found.trials[found.best].mean()),
            price: Self::price_of(space, found, &before),
            before,
            verified: None,
            applied: false,
            took: Vec::new(),
            environment,
        }
    }

    fn rows(space: &Space, goal: &Goal, found: &SearchResult, answers: &Answers) -> Vec<TrialRow> {
        let figures: Vec<Figures> = found.trials.iter().map(Trial::mean).collect();
        let front = front(&figures, goal.latency());
        let row = |((trial, figures), on_front): ((&Trial, Figures), bool)| {
            let change = space.change(&trial.point);
            let said = |to: &[(Point, String)]| {
                let mut those = to.iter().filter(|(point, _)| *point == trial.point);
                those.next().map(|(_, words)| words.clone())
            };
            TrialRow {
                setting: if change.is_empty() { PRESENT.into() } else { change.to_string() },
                rounds: trial.rounds.len(),
                figures,
                on_front,
                refused: said(&answers.refused),
                otherwise: said(&answers.otherwise),
            }
        };
        found.trials.iter().zip(figures).zip(front).map(row).collect()
    }

    /// What the pick costs, if it never waits: stated whenever it is recommended, whatever the
    /// goal.
    fn price_of(space: &Space, found: &SearchResult, before: &State) -> Option<String> {
        let never_waits = |point: &Point| {
            let change = space.change(point);
            let value = |setting| change.get(setting).or_else(|| before.get(setting));
            value(Setting::RxUsecs) == Some(&Value::Number(0))
                && value(Setting::AdaptiveRx) != Some(&Value::Switch(true))
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

    /// The figures that were measured at all, in order.
    fn metrics(&self) -> Vec<Metric> {
        let names = Metric::NAMES.iter().skip(1).map(|(_, metric)| *metric);
        let all = names.chain([Metric::Value]);
        all.filter(|metric| self.trials.iter().any(|row| row.figures.get(*metric).is_some()))
            .collect()
    }

    /// For a terminal: the figures that people compare.
    pub fn table(&self, width: Width) -> String {
        let mut metrics = self.metrics();
        metrics.retain(|metric| {
            let named = self.goal.contains(metric.name());
            named || !matches!(metric, Metric::P90 | Metric::Max | Metric::Mean)
        });
        let table = trials_table(&self.goal, &metrics, &self.trials, |at| self.remark(at));
        let title =
            format!("{} ({}), {}, goal: {}\n", self.device, self.driver, self.workload, self.goal);
        width.wrap(&title) + &table.fit(width) + "\n"
    }

    fn remark(&self, at: usize) -> String {
        match &self.trials[at] {
            _ if at == self.pick => "picked".into(),
            _ if self.present == Some(at) => "as it was".into(),
            row if row.refused.is_some() => "refused".into(),
            row if row.otherwise.is_some() => "not as asked".into(),
            _ if self.rivals.contains(&at) => "as good".into(),
            row if row.on_front => "front".into(),
            _ => String::new(),
        }
    }

    /// What it says, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let pick = &self.trials[self.pick];
        let mut sentences = vec![format!(
            "pick: {}, after {} trials and {} measurements",
            pick.setting,
            self.trials.len(),
            self.measurements
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
        if let Some(Verified { before, after, by_goal, .. }) = &self.verified {
            let figures: Vec<String> = self
                .metrics()
                .into_iter()
                .filter_map(|metric| {
                    let (before, after) = (before.get(metric)?, after.get(metric)?);
                    let worth = [Metric::P50, Metric::P99, Metric::Cpu, Metric::Interrupts];
                    let is_named = worth.contains(&metric) || !metric.is_latency();
                    is_named.then(|| {
                        format!("{metric} {} -> {}", short(metric, before), metric.with_unit(after))
                    })
                })
                .collect();
            sentences
                .push(format!("measured again, in turns with how it was: {}", figures.join(", ")));
            sentences.extend(by_goal.as_ref().map(|words| format!("by the goal: {words}")));
        }
        sentences
    }

    /// As a page.
    pub fn report(&self) -> Report {
        let metrics = self.metrics();
        let mut headers = vec!["setting".to_owned()];
        headers.extend(metrics.iter().map(|metric| header(*metric).to_owned()));
        headers.push(String::new());
        let row = |(at, row): (usize, &TrialRow)| {
            let mut cells = vec![Cell::plain(row.setting.clone())];
            cells.extend(metrics.iter().map(|metric| Cell::plain(cell(*metric, &row.figures))));
            let remark = self.remark(at);
            cells.push(if at == self.pick { Cell::good(remark) } else { Cell::plain(remark) });
            cells
        };
        let point = |row: &TrialRow| {
            Some(TradeoffPoint {
                name: row.setting.replace("adaptive-rx off ", ""),
                latency_us: row.figures.get(Metric::P50)?,
                interrupts_per_s: row.figures.get(Metric::Interrupts)?,
                host_busy: None,
                bulk_mbit: row.figures.get(Metric::Throughput).map(|bits| bits / 1e6),
            })
        };
        Report {
            title: format!("Settings of {} for {}", self.device, self.workload),
            subtitle: format!("Goal: {}. {}.", self.goal, self.driver),
            made_at: self.environment.date.clone(),
            story: self.sentences().join(". "),
            table: report::Table {
                headers,
                rows: self.trials.iter().enumerate().map(row).collect(),
            },
            latency: Vec::new(),
            tradeoff: TradeoffChart {
                title: "Latency against interrupts".into(),
                note: "Each point is a setting that was tried.".into(),
                points: self.trials.iter().filter_map(point).collect(),
            },
            timelines: Vec::new(),
            environment: self.environment.entries(),
        }
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

/// A row for each trial; figures that the goal names are never left out.
fn trials_table(
    goal: &str,
    metrics: &[Metric],
    trials: &[TrialRow],
    remark: impl Fn(usize) -> String,
) -> Table {
    let rank = |metric: &Metric| match metric {
        _ if goal.contains(metric.name()) => 0,
        Metric::P50 | Metric::Interrupts => 1,
        Metric::P99 | Metric::Cpu | Metric::Value => 2,
        _ => 3,
    };
    let figures = metrics.iter().map(|metric| (header(*metric), rank(metric)));
    let columns = std::iter::once(("setting", 0)).chain(figures);
    let mut table = Table::new(columns.chain([("rounds", 4), ("", 0)])).with_words_last();
    for (at, row) in trials.iter().enumerate() {
        let mut cells = vec![row.setting.clone()];
        cells.extend(metrics.iter().map(|metric| cell(*metric, &row.figures)));
        cells.extend([row.rounds.to_string(), remark(at)]);
        table.add_row(cells);
    }
    table
}

fn header(metric: Metric) -> &'static str {
    match metric {
        Metric::P50 => "p50 us",
        Metric::P90 => "p90 us",
        Metric::P99 => "p99 us",
        Metric::P999 => "p99.9 us",
        Metric::Max => "max us",
        Metric::Mean => "mean us",
        Metric::Cpu => "cpu cores",
        Metric::Interrupts => "interrupts/s",
        Metric::Transactions => "answers/s",
        Metric::Throughput => "Mbit/s",
        Metric::Value => "value",
    }
}

fn cell(metric: Metric, figures: &Figures) -> String {
    let value = figures.get(metric);
    match metric {
        Metric::Cpu => number(value, 2),
        Metric::Interrupts | Metric::Transactions => number(value, 0),
        Metric::Throughput => number(value.map(|bits| bits / 1e6), 0),
        Metric::Value => number(value, 3),
        _ => number(value, 1),
    }
}

fn short(metric: Metric, value: f64) -> String {
    cell(metric, &Figures([(metric, value)].into()))
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
        SearchResult { trials, best, rivals: vec![] }
    }

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
    fn a_number_that_never_changes_is_noticed() {
        let trial = |values: &[f64]| Trial {
            point: Point::Special(0),
            rounds: values.iter().map(|it| (0, Figures([(Metric::Value, *it)].into()))).collect(),
        };
        assert!(never_changed(&[trial(&[16_384.0]), trial(&[16_384.0, 16_384.0])]));
        assert!(!never_changed(&[trial(&[5.0, 5.0]), trial(&[5.1])]));
        assert!(!never_changed(&[trial(&[5.0])]) && !never_changed(&[trial(&[])]));
    }

    #[test]
    fn trials_fit_every_terminal_with_what_the_goal_names() {
        let metrics: Vec<Metric> =
            Metric::NAMES.iter().skip(1).map(|(_, metric)| *metric).collect();
        let figures = Figures(metrics.iter().map(|metric| (*metric, 98_765_432.1)).collect());
        let setting = "adaptive-rx off rx-usecs 1022 rx-frames 64";
        let trial = || TrialRow {
            setting: setting.into(),
            rounds: 12,
            figures: figures.clone(),
            on_front: true,
            refused: None,
            otherwise: None,
        };
        let goal = "min p99 where interrupts<5000";
        let draw = |width| {
            trials_table(goal, &metrics, &[trial(), trial()], |_| "picked".into()).fit(width)
        };
        let essential = ["rx-usecs 1022", "p99 us", "interrupts/s", "98765432.1", "picked"];
        report::terminal::checks::fits(draw, &essential);
    }
}
