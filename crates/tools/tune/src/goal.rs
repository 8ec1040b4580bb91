//! Goals: what the user wants, as text.
//!
//! A goal is a list of clauses: at most one aim, `min METRIC` or `max METRIC`, and any number of
//! limits, `METRIC < VALUE`. Without an aim, a limit of a latency means: cheap (`min cpu`),
//! and a limit of a cost: fast (`min latency`).

use std::fmt;
use std::str::FromStr;

use base::quantity::Unit;
use report::names::did_you_mean;
use report::numbers;
use serde::Deserialize;

use super::figures::{Figures, Metric, logarithm};

/// The error of a wrong goal.
const EXAMPLES: &str = "write it like `p99 < 200us`, `min latency, cpu < 30%`, `min cpu, p99 < 150us`, \
                        `min interrupts, mean < 1ms` or `max throughput`";

/// By how much an exceeded limit counts: one hundredth too much is as bad as an aim that is a fifth
/// worse.
const PENALTY: f64 = 20.0;

/// What is to be small or large, and what must not be exceeded.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// What is to be as small as possible; or as large, if the direction says so.
    pub(crate) aim: (Sense, Metric),
    /// What must hold.
    pub limits: Vec<Limit>,
    /// The user has named no aim.
    is_implied: bool,
    text: String,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sense {
    /// Smaller values are better.
    Min,
    /// Larger values are better.
    Max,
}

impl Sense {
    /// How much of a figure is better.
    pub fn in_words(self) -> &'static str {
        if self == Self::Min { "less" } else { "more" }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    pub metric: Metric,
    /// It is to be below the bound; or above, if the direction says so.
    pub direction: Sense,
    /// The bound, in the metric's unit.
    pub bound: f64,
}

impl Limit {
    fn holds(&self, value: Option<f64>) -> bool {
        value.is_some_and(|value| match self.direction {
            Sense::Min => value <= self.bound,
            Sense::Max => value >= self.bound,
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.direction == Sense::Min { "<" } else { ">" };
        write!(f, "{} {sign} {}", self.metric, self.metric.with_unit(self.bound))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Miss {
    pub(crate) limit: Limit,
    /// What was measured, in the metric's unit; `None` if it was not.
    pub(crate) value: Option<f64>,
}

impl Miss {
    pub(crate) fn by(&self) -> Option<f64> {
        self.value.map(|value| (value - self.limit.bound).abs() / self.limit.bound)
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limit { metric, direction, bound } = self.limit;
        let (Some(value), Some(by)) = (self.value, self.by()) else {
            return write!(f, "{metric} was not measured, so nothing shows that {}", self.limit);
        };
        let (sign, what) = match direction {
            Sense::Min => ("<", "too much"),
            Sense::Max => (">", "too little"),
        };
        let (value, bound) = (metric.with_unit(value), metric.with_unit(bound));
        // A miss is never rounded to none.
        let percent = (by * 100.0).max(0.1);
        let digits = usize::from(percent < 10.0);
        write!(f, "{metric} is {value}, not {sign} {bound} ({percent:.digits$} % {what})")
    }
}

impl Goal {
    /// The goal of a user's own command.
    pub fn of_command(direction: Sense) -> Self {
        let text = if direction == Sense::Min { "min value" } else { "max value" };
        Self {
            aim: (direction, Metric::Value),
            limits: Vec::new(),
            is_implied: false,
            text: text.into(),
        }
    }

    /// The figure that the aim is about, if it was measured. Where CPU time cannot be measured, as
    /// in virtual time, interrupts stand for it, unless the user has named it.
    pub(crate) fn aimed(&self, figures: &Figures) -> Option<f64> {
        let cheap = || figures.get(Metric::Interrupts).filter(|_| self.aim.1 == Metric::Cpu);
        figures.get(self.aim.1).or_else(|| cheap().filter(|_| self.is_implied))
    }

    /// The metrics that it is about.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        std::iter::once(self.aim.1).chain(self.limits.iter().map(|limit| limit.metric))
    }

    pub(crate) fn is_about(&self, metric: Metric) -> bool {
        let stands_in = self.is_implied && self.aim.1 == Metric::Cpu;
        self.metrics().any(|own| own == metric) || (stands_in && metric == Metric::Interrupts)
    }

    /// Which way is better of a metric that it is about.
    pub(crate) fn wants(&self, metric: Metric) -> Sense {
        let limit = self.limits.iter().find(|limit| limit.metric == metric);
        let (sense, aim) = self.aim;
        if aim == metric { sense } else { limit.map_or(Sense::Min, |limit| limit.direction) }
    }

    /// How bad figures are: the logarithm of the aim, and much more for each limit that is
    /// exceeded. Figures that are missing are as bad as can be.
    pub fn cost(&self, figures: &Figures) -> f64 {
        self.aim_cost(figures) + PENALTY * self.excess(figures)
    }

    /// The same without limits: a logarithm that is smaller where the aim is met better.
    pub(crate) fn aim_cost(&self, figures: &Figures) -> f64 {
        let Some(value) = self.aimed(figures) else { return f64::INFINITY };
        match self.aim.0 {
            Sense::Min => logarithm(value),
            Sense::Max => -logarithm(value),
        }
    }

    /// By how much limits are exceeded, as a logarithm; 0 if all hold.
    pub(crate) fn excess(&self, figures: &Figures) -> f64 {
        let excess = |limit: &Limit| {
            let Some(value) = figures.get(limit.metric) else { return f64::INFINITY };
            let over = logarithm(value) - logarithm(limit.bound);
            if limit.direction == Sense::Min { over.max(0.0) } else { (-over).max(0.0) }
        };
        self.limits.iter().map(excess).sum()
    }

    /// The limits that figures do not meet. What was not measured meets none.
    pub fn misses(&self, figures: &Figures) -> Vec<Miss> {
        let missed = |limit: &&Limit| !limit.holds(figures.get(limit.metric));
        let miss = |limit: &Limit| Miss { limit: *limit, value: figures.get(limit.metric) };
        self.limits.iter().filter(missed).map(miss).collect()
    }

    /// The latency that it is about, or the median.
    pub fn latency(&self) -> Metric {
        self.metrics().find(|metric| metric.is_latency()).unwrap_or(Metric::P50)
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut aim, mut limits) = (None, Vec::new());
        for clause in text.split(',').map(str::trim) {
            if clause.is_empty() {
                return Err(format!("`{text}` is no goal; {EXAMPLES}"));
            }
            // `max` is a metric, too: `max < 1ms`.
            let words = clause.split_once(char::is_whitespace);
            match words.filter(|(_, rest)| !rest.trim_start().starts_with(['<', '>'])) {
                Some(("min" | "max", _)) if aim.is_some() => {
                    return Err(format!(
                        "`{text}` has two aims; make one of them a limit: {EXAMPLES}"
                    ));
                }
                Some(("min", name)) => aim = Some((Sense::Min, metric(name)?)),
                Some(("max", name)) => aim = Some((Sense::Max, metric(name)?)),
                _ => limits.push(limit(clause)?),
            }
        }
        let usual = || {
            let latency = limits.iter().any(|limit: &Limit| limit.metric.is_latency());
            (Sense::Min, if latency { Metric::Cpu } else { Metric::P50 })
        };
        consistent(&limits)?;
        let (is_implied, text) = (aim.is_none(), text.trim().to_owned());
        Ok(Self { aim: aim.unwrap_or_else(usual), limits, is_implied, text })
    }
}

/// Refuses limits of which one is idle, or which no figures can meet together.
fn consistent(limits: &[Limit]) -> Result<(), String> {
    for (at, one) in limits.iter().enumerate() {
        for other in &limits[..at] {
            if one.metric == other.metric && one.direction == other.direction {
                return Err(format!(
                    "{} is limited twice, by `{other}` and `{one}`; name one limit",
                    one.metric
                ));
            }
        }
    }
    let (upper, lower): (Vec<&Limit>, Vec<&Limit>) =
        limits.iter().partition(|limit| limit.direction == Sense::Min);
    for (upper, lower) in upper.iter().flat_map(|upper| lower.iter().map(move |l| (upper, l))) {
        let (small, large) = (lower.metric, upper.metric);
        if small.is_at_most(large) && lower.bound >= upper.bound {
            let why = match small == large {
                true => String::new(),
                false => format!(", because {small} is never above {large}"),
            };
            return Err(format!("no setting can meet both `{upper}` and `{lower}`{why}"));
        }
    }
    Ok(())
}

fn metric(name: &str) -> Result<Metric, String> {
    let name = name.trim();
    let found = Metric::named().find(|(known, _)| *known == name);
    found.map(|(_, metric)| metric).ok_or_else(|| {
        let names = did_you_mean(name, Metric::named().map(|(name, _)| name), None);
        format!("`{name}` is nothing that is measured; {names}; {EXAMPLES}")
    })
}

fn limit(clause: &str) -> Result<Limit, String> {
    let at = clause.find(['<', '>']).ok_or_else(|| format!("`{clause}` is no goal; {EXAMPLES}"))?;
    let (name, rest) = clause.split_at(at);
    let direction = if rest.starts_with('<') { Sense::Min } else { Sense::Max };
    let text = rest[1..].trim_start_matches('=').trim();
    let metric = metric(name)?;
    let (unit, times) = match metric {
        Metric::Cpu => (Unit::Cores, 1.0),
        Metric::Throughput => (Unit::Mbit, 1e6),
        Metric::Interrupts | Metric::Transactions => (Unit::PerSecond, 1.0),
        _ => (Unit::Micros, 1.0),
    };
    let bound = numbers::read(unit, text, 0.0..=f64::MAX);
    let bound = bound.map_err(|why| format!("`{clause}`: `{text}` {why}"))? * times;
    if bound <= 0.0 {
        return Err(format!("`{clause}`: a limit is above 0"));
    }
    Ok(Limit { metric, direction, bound })
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(text: &str) -> Goal {
        text.parse().unwrap()
    }

    #[test]
    fn a_limit_weighs_more_than_the_aim() {
        let goal = goal("min cpu, p99 < 200us");
        let cost = |cpu: f64, p99: f64| {
            goal.cost(&Figures([(Metric::Cpu, cpu), (Metric::P99, p99)].into()))
        };
        assert!(cost(0.5, 190.0) < cost(0.1, 250.0));
        assert!(cost(0.1, 190.0) < cost(0.5, 100.0));
        assert!(cost(0.5, 250.0) < cost(0.1, 400.0));
        assert_eq!(goal.cost(&Figures::default()), f64::INFINITY);
    }

    #[test]
    fn a_miss_says_by_how_much() {
        let missed = |text: &str, figures: &[(Metric, f64)]| {
            let figures = Figures(figures.iter().copied().collect());
            goal(text).misses(&figures).iter().map(Miss::to_string).collect::<Vec<_>>()
        };
        let slow = missed("p99 < 200us", &[(Metric::P99, 250.0)]);
        assert_eq!(slow, ["p99 is 250.0 us, not < 200.0 us (25 % too much)"]);
        let low = missed("throughput > 900Mbit", &[(Metric::Throughput, 873e6)]);
        assert_eq!(low, ["throughput is 873 Mbit/s, not > 900 Mbit/s (3.0 % too little)"]);
        let near = missed("p99 < 200us", &[(Metric::P99, 200.001)]);
        assert_eq!(near, ["p99 is 200.0 us, not < 200.0 us (0.1 % too much)"]);
        assert!(missed("p99 < 200us", &[(Metric::P99, 200.0)]).is_empty());
        let unknown = missed("interrupts < 20k", &[]);
        assert!(unknown[0].contains("interrupts was not measured"), "{unknown:?}");
    }
}
