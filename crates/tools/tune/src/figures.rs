//! What a trial measures, by name.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, ensure};
use bench::records::per_second;
use bench::slice::Part;
use hostside::quantiles::Quantiles;
use report::terminal::number;
use serde::Serialize;
use workload::{Counter, Record, Timing};

/// A figure that a goal can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    /// What the user's command printed.
    Value,
}

impl Metric {
    pub(crate) const NAMES: [(&'static str, Self); 11] = [
        ("latency", Self::P50),
        ("p50", Self::P50),
        ("p90", Self::P90),
        ("p99", Self::P99),
        ("p99.9", Self::P999),
        ("max", Self::Max),
        ("mean", Self::Mean),
        ("cpu", Self::Cpu),
        ("interrupts", Self::Interrupts),
        ("transactions", Self::Transactions),
        ("throughput", Self::Throughput),
    ];

    /// Its name in goals and in JSON, such as `p99`.
    pub fn name(self) -> &'static str {
        let named = Self::NAMES.iter().skip(1).find(|(_, metric)| *metric == self);
        named.map_or("value", |(name, _)| name)
    }

    pub(crate) fn is_latency(self) -> bool {
        matches!(self, Self::P50 | Self::P90 | Self::P99 | Self::P999 | Self::Max | Self::Mean)
    }

    /// Whether its value is never above that of `other` in one measurement.
    pub(crate) fn is_at_most(self, other: Self) -> bool {
        const RISING: [Metric; 5] =
            [Metric::P50, Metric::P90, Metric::P99, Metric::P999, Metric::Max];
        let rank = |metric| RISING.iter().position(|known| *known == metric);
        self == other
            || (self == Self::Mean && other == Self::Max)
            || rank(self).zip(rank(other)).is_some_and(|(own, other)| own < other)
    }

    /// The header of its column in a table.
    pub fn header(self) -> &'static str {
        match self {
            Self::P50 => "p50 us",
            Self::P90 => "p90 us",
            Self::P99 => "p99 us",
            Self::P999 => "p99.9 us",
            Self::Max => "max us",
            Self::Mean => "mean us",
            Self::Cpu => "cpu cores",
            Self::Interrupts => "interrupts/s",
            Self::Transactions => "answers/s",
            Self::Throughput => "Mbit/s",
            Self::Value => "value",
        }
    }

    pub(crate) fn cell(self, value: Option<f64>) -> String {
        match self {
            Self::Cpu => number(value, 2),
            Self::Interrupts | Self::Transactions => number(value, 0),
            Self::Throughput => number(value.map(|bits| bits / 1e6), 0),
            Self::Value => number(value, 3),
            _ => number(value, 1),
        }
    }

    /// A value with its unit, for people.
    pub fn with_unit(self, value: f64) -> String {
        let unit = match self {
            Self::Cpu => "cores",
            Self::Interrupts => "interrupts/s",
            Self::Transactions => "round trips/s",
            Self::Throughput => "Mbit/s",
            Self::Value => return format!("{}", (value * 1e3).round() / 1e3),
            _ => "us",
        };
        format!("{} {unit}", self.cell(Some(value)))
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Figures(pub BTreeMap<Metric, f64>);

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
