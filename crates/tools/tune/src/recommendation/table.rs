//! The table and the page of a recommendation.

use report::terminal::{Table, Width};
use report::{self, Cell, ChartLimit, PointRole, Report, TradeoffChart, TradeoffPoint};

use super::{Recommendation, Subject, TrialRow};
use crate::figures::Metric;
use crate::goal::{Goal, Limit};

impl Recommendation {
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let is_measured =
            |metric: &Metric| self.trials.iter().any(|row| row.figures.get(*metric).is_some());
        Metric::all().filter(is_measured).collect()
    }

    /// For a terminal: the figures that people compare.
    pub fn table(&self, width: Width) -> String {
        let mut metrics = self.metrics();
        metrics.retain(|metric| {
            let named = self.goal.contains(metric.name());
            named || !matches!(metric, Metric::P90 | Metric::Max | Metric::Mean)
        });
        let table = trials_table(&self.goal, &metrics, &self.trials, |at| self.remark(at));
        let Subject { device, driver, workload, .. } = &self.subject;
        let title = format!("{device} ({driver}), {workload}, goal: {}\n", self.goal);
        width.wrap(&title) + &table.fit(width) + "\n"
    }

    fn remark(&self, at: usize) -> String {
        let misses = &self.trials[at].misses;
        let role = self.role(at);
        match misses.is_empty() {
            true => role,
            false if role.is_empty() => format!("misses {}", misses.join(", ")),
            false => format!("{role}; misses {}", misses.join(", ")),
        }
    }

    fn role(&self, at: usize) -> String {
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

    /// As a page.
    pub fn report(&self) -> Report {
        let Subject { device, driver, workload, environment, .. } = &self.subject;
        let metrics = self.metrics();
        let mut headers = vec!["setting".to_owned()];
        headers.extend(metrics.iter().map(|metric| metric.header().to_owned()));
        headers.push(String::new());
        let row = |(at, row): (usize, &TrialRow)| {
            // On a narrow screen the remarks are out of sight.
            let name = if at == self.pick { Cell::good } else { Cell::plain };
            let mut cells = vec![name(row.setting.clone())];
            cells.extend(
                metrics.iter().map(|metric| Cell::plain(metric.cell(row.figures.get(*metric)))),
            );
            let remark = self.remark(at);
            cells.push(match &row.misses[..] {
                [] if at == self.pick => Cell::good(remark),
                [] => Cell::plain(remark),
                _ => Cell::bad(remark),
            });
            cells
        };
        Report {
            title: format!("Settings of {device} for {workload}"),
            subtitle: format!("Goal: {}. {driver}.", self.goal),
            made_at: environment.date.clone(),
            summary: self.sentences().join(". "),
            table: report::Table {
                headers,
                rows: self.trials.iter().enumerate().map(row).collect(),
            },
            tradeoff: self.tradeoff(),
            environment: environment.entries(),
            ..Report::default()
        }
    }

    /// Every setting by the latency of the goal and its interrupts, with the limits of the goal.
    fn tradeoff(&self) -> TradeoffChart {
        let goal: Option<Goal> = self.goal.parse().ok();
        let latency = goal.as_ref().map_or(Metric::P50, Goal::latency);
        let point = |(at, row): (usize, &TrialRow)| {
            Some(TradeoffPoint {
                name: row.setting.replace("adaptive-rx off ", ""),
                role: match at {
                    _ if at == self.pick => PointRole::Pick,
                    _ if self.present == Some(at) => PointRole::Old,
                    _ => PointRole::Other,
                },
                latency_us: row.figures.get(latency)?,
                interrupts_per_s: row.figures.get(Metric::Interrupts)?,
                host_busy: None,
                bulk_mbit: row.figures.get(Metric::Throughput).map(|bits| bits / 1e6),
            })
        };
        let limits = goal.iter().flat_map(|goal| &goal.limits);
        let limits = limits.filter(|it| it.metric == latency || it.metric == Metric::Interrupts);
        let limit = |it: &Limit| ChartLimit {
            is_of_latency: it.metric == latency,
            value: it.bound,
            text: it.to_string(),
        };
        TradeoffChart {
            title: "Latency against interrupts".into(),
            note: "Each point is a setting that was tried: the pick has a ring, the one before a \
                   dashed one. Dashed lines are limits of the goal."
                .into(),
            latency: format!("{latency} of round trips"),
            points: self.trials.iter().enumerate().filter_map(point).collect(),
            limits: limits.map(limit).collect(),
        }
    }
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
        Metric::P99 | Metric::Cpu | Metric::Value | Metric::Polled => 2,
        _ => 3,
    };
    let figures = metrics.iter().map(|metric| (metric.header(), rank(metric)));
    let columns = std::iter::once(("setting", 0)).chain(figures);
    let mut table = Table::new(columns.chain([("rounds", 4), ("", 0)])).with_words_last();
    for (at, row) in trials.iter().enumerate() {
        let mut cells = vec![row.setting.clone()];
        cells.extend(metrics.iter().map(|metric| metric.cell(row.figures.get(*metric))));
        cells.extend([row.rounds.to_string(), remark(at)]);
        table.add_row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    #[test]
    fn trials_fit_every_terminal_with_what_the_goal_names() {
        let metrics: Vec<Metric> = Metric::all().filter(|it| *it != Metric::Value).collect();
        let figures = Figures(metrics.iter().map(|metric| (*metric, 98_765_432.1)).collect());
        let setting = "adaptive-rx off rx-usecs 1022 rx-frames 64";
        let trial = || TrialRow {
            setting: setting.into(),
            rounds: 12,
            figures: figures.clone(),
            expected: None,
            on_front: true,
            misses: vec!["p99".into()],
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
