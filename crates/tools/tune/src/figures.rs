//! What a trial measures, by name.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, ensure};
use base::quantiles::Quantiles;
use bench::records::per_second;
use bench::slice::Part;
use report::terminal::number;
use schemars::JsonSchema;
use serde::Serialize;
use workload::{Counter, Record, Timing};

/// A figure that a goal can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Half of the round trips take no longer, in microseconds. `latency` is this.
    P50,
    /// Nine in ten take no longer, in microseconds.
    P90,
    /// 99 in 100 take no longer, in microseconds.
    P99,
    /// 999 in 1000 take no longer, in microseconds.
    #[serde(rename = "p99.9")]
    P999,
    /// None takes longer, in microseconds.
    Max,
    /// The arithmetic mean, in microseconds.
    Mean,
    /// CPU time of this machine per second, all programs together, in cores.
    Cpu,
    /// Interrupts of the device, a second.
    Interrupts,
    /// Round trips a second.
    Transactions,
    /// Bits of the bulk flow a second.
    Throughput,
    /// The share of the device's packets that programs of its network found by polls of their own,
    /// from 0 to 1, while interrupts were to be suspended.
    Polled,
    /// What the user's command printed.
    Value,
}

/// What is to be known of a metric.
struct MetricRow {
    metric: Metric,
    /// Its name in goals and in JSON.
    name: &'static str,
    /// Of its column in a table.
    header: &'static str,
    /// For people, behind a value.
    unit: &'static str,
    /// Behind the decimal point.
    digits: usize,
}

const TABLE: [MetricRow; 12] = {
    const fn row(
        metric: Metric,
        [name, header, unit]: [&'static str; 3],
        digits: usize,
    ) -> MetricRow {
        MetricRow { metric, name, header, unit, digits }
    }
    [
        row(Metric::P50, ["p50", "p50 us", "us"], 1),
        row(Metric::P90, ["p90", "p90 us", "us"], 1),
        row(Metric::P99, ["p99", "p99 us", "us"], 1),
        row(Metric::P999, ["p99.9", "p99.9 us", "us"], 1),
        row(Metric::Max, ["max", "max us", "us"], 1),
        row(Metric::Mean, ["mean", "mean us", "us"], 1),
        row(Metric::Cpu, ["cpu", "cpu cores", "cores"], 2),
        row(Metric::Interrupts, ["interrupts", "interrupts/s", "interrupts/s"], 0),
        row(Metric::Transactions, ["transactions", "answers/s", "round trips/s"], 0),
        row(Metric::Throughput, ["throughput", "Mbit/s", "Mbit/s"], 0),
        row(Metric::Polled, ["polled", "polled %", "%"], 0),
        row(Metric::Value, ["value", "value", ""], 3),
    ]
};

impl Metric {
    /// All of them, in the order of the table.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.metric)
    }

    /// Those that a goal can name, by its words.
    pub(crate) fn named() -> impl Iterator<Item = (&'static str, Self)> {
        let is_of_command = |it| matches!(it, Self::Value | Self::Polled);
        let all = TABLE.iter().filter(move |row| !is_of_command(row.metric));
        [("latency", Self::P50)].into_iter().chain(all.map(|row| (row.name, row.metric)))
    }

    fn row(self) -> &'static MetricRow {
        // Each has a row.
        TABLE.iter().find(|row| row.metric == self).unwrap_or(&TABLE[0])
    }

    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    pub(crate) fn header(self) -> &'static str {
        self.row().header
    }

    pub(crate) fn is_latency(self) -> bool {
        self.row().unit == "us"
    }

    /// Whether its value is never above that of `other` in one measurement.
    pub(crate) fn is_at_most(self, other: Self) -> bool {
        let is_quantile = |metric: Self| metric.is_latency() && metric != Self::Mean;
        self == other
            || (self == Self::Mean && other == Self::Max)
            || is_quantile(self) && is_quantile(other) && self < other
    }

    /// A value as a number, in the unit of its column.
    pub(crate) fn cell(self, value: Option<f64>) -> String {
        let scale = match self {
            Self::Throughput => 1e6,
            Self::Polled => 1e-2,
            _ => 1.0,
        };
        number(value.map(|value| value / scale), self.row().digits)
    }

    /// A value with its unit, for people.
    pub fn with_unit(self, value: f64) -> String {
        match self {
            Self::Value => format!("{}", (value * 1e3).round() / 1e3),
            _ => format!("{} {}", self.cell(Some(value)), self.row().unit),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Figures(#[schemars(with = "BTreeMap<String, f64>")] pub BTreeMap<Metric, f64>);

impl Figures {
    pub(crate) fn get(&self, metric: Metric) -> Option<f64> {
        self.0.get(&metric).copied()
    }

    pub(crate) fn add(&mut self, records: &[(Part, Record)]) -> Result<()> {
        for (part, record) in records {
            match part {
                Part::Asker => self.add_latency(record)?,
                Part::BulkSink => {
                    let bits = per_second(record, Counter::BytesReceived) * 8.0;
                    ensure!(
                        bits > 0.0,
                        "the bulk flow did not flow; measure for longer: --duration"
                    );
                    self.0.insert(Metric::Throughput, bits);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add_latency(&mut self, record: &Record) -> Result<()> {
        let latency = record.distribution(Timing::Latency);
        let quantiles = Quantiles::of(&latency);
        let of = quantiles.context("no request was answered; measure for longer: --duration")?;
        self.0.extend([
            (Metric::P50, of.p50),
            (Metric::P90, of.p90),
            (Metric::P99, of.p99),
            (Metric::P999, latency.quantile_ns(999) as f64 / 1_000.0),
            (Metric::Max, of.max),
            (Metric::Mean, of.mean),
            (Metric::Transactions, per_second(record, Counter::Transactions)),
        ]);
        Ok(())
    }

    /// The geometric mean of several: a ratio counts the same up and down, and one round that was
    /// disturbed weighs less than in the arithmetic one.
    pub(crate) fn mean<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let mut sums: BTreeMap<Metric, (f64, f64)> = BTreeMap::new();
        for (metric, value) in all.flat_map(|figures| &figures.0) {
            let sum = sums.entry(*metric).or_default();
            *sum = (sum.0 + logarithm(*value), sum.1 + 1.0);
        }
        let mean = |(metric, (sum, count)): (Metric, (f64, f64))| (metric, linear(sum / count));
        Self(sums.into_iter().map(mean).collect())
    }
}

/// What is added before a logarithm is taken, so that 0 has one, in the units of any figure.
const SMALLEST: f64 = 1e-3;

/// The logarithm of a figure, which may be 0.
pub(crate) fn logarithm(value: f64) -> f64 {
    (value.max(0.0) + SMALLEST).ln()
}

pub(crate) fn linear(logarithm: f64) -> f64 {
    let value = (logarithm.exp() - SMALLEST).max(0.0);
    let unit = 10_f64.powi((value + SMALLEST).log10().floor() as i32 - 8);
    if value.is_finite() && unit > 0.0 { (value / unit).round() * unit } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_geometric_and_of_what_was_measured() {
        let figures = |pairs: &[(Metric, f64)]| Figures(pairs.iter().copied().collect());
        let all = [
            figures(&[(Metric::P50, 100.0), (Metric::Cpu, 0.0)]),
            figures(&[(Metric::P50, 400.0), (Metric::Cpu, 0.0), (Metric::Max, 5.0)]),
        ];
        let mean = Figures::mean(all.iter());
        assert!((mean.get(Metric::P50).unwrap() - 200.0).abs() < 0.01, "{mean:?}");
        assert!(mean.get(Metric::Cpu).unwrap() < 1e-9 && mean.get(Metric::P99).is_none());
        assert!((mean.get(Metric::Max).unwrap() - 5.0).abs() < 1e-9);
    }
}
