//! Values of metrics at one moment, and their two text formats.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::metric::{Kind, Metric};

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// What it is of.
    pub metric: Metric,
    /// The values of its labels, in the order of its family.
    pub labels: Vec<String>,
    /// What it is now.
    pub value: Value,
}

/// What a metric may be.
#[derive(Clone, Debug)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A number with a fraction.
    Number(f64),
    /// How often a value was at most so much.
    Histogram(Histogram),
    /// The same, counted elsewhere.
    Buckets {
        /// The sum of all values.
        sum: f64,
        /// How many are in each bucket of its metric, and at the end how many are in none.
        counts: Vec<u64>,
    },
}

/// Histograms cannot be read back, so none equals another.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Count(one), Self::Count(other)) => one == other,
            (Self::Number(one), Self::Number(other)) => one == other,
            _ => false,
        }
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<bool> for Value {
    fn from(is_on: bool) -> Self {
        Self::Count(is_on.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl Sample {
    /// A value. The labels are those of the metric's family.
    pub fn new(metric: Metric, labels: &[&str], value: impl Into<Value>) -> Self {
        debug_assert_eq!(labels.len(), metric.family().labels.len(), "{metric:?}");
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        Self { metric, labels, value: value.into() }
    }
}

/// The two formats of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The newer one.
    OpenMetrics,
    /// The older one, which everything else reads, node_exporter's textfile collector among it.
    Plain,
}

impl Format {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// The text of `samples`, ordered by metric.
pub fn encode(samples: &[Sample], format: Format) -> String {
    let mut ordered = samples.to_vec();
    ordered.sort_by_key(|sample| sample.metric);
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Ordered(ordered)));
    let mut written = String::new();
    let outcome = match format {
        Format::OpenMetrics => text::encode(&mut written, &registry),
        Format::Plain => prometheus_text::encode(&mut written, &registry),
    };
    outcome.expect("a string takes any text");
    written
}

/// The text as a label: control characters and backslashes are escaped, so that no terminal obeys
/// one and no two names become the same.
fn label(name: &str) -> String {
    let is_escaped = |c: char| c.is_control() || c == '\\';
    name.chars().fold(String::new(), |mut label, c| {
        if is_escaped(c) {
            label.extend(c.escape_default());
        } else {
            label.push(c);
        }
        label
    })
}

/// Samples of which those of one metric follow each other.
#[derive(Debug)]
struct Ordered(Vec<Sample>);

impl Collector for Ordered {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for samples in self.0.chunk_by(|one, next| one.metric == next.metric) {
            let family = samples[0].metric.family();
            let (unit, kind) = (family.unit, family.metric_type());
            let mut encoder = encoder.encode_descriptor(family.stem, family.help, unit, kind)?;
            for sample in samples {
                let values = sample.labels.iter().map(|value| label(value));
                let labels: Vec<_> = family.labels.iter().copied().zip(values).collect();
                if family.kind == Kind::Info {
                    encoder.encode_info(&labels)?;
                    continue;
                }
                let mut encoder = encoder.encode_family(&labels)?;
                match (family.kind, &sample.value) {
                    (Kind::Counter, Value::Count(count)) => {
                        encoder.encode_counter::<NoLabelSet, _, f64>(count, None)?;
                    }
                    (Kind::Counter, Value::Number(number)) => {
                        encoder.encode_counter::<NoLabelSet, _, f64>(number, None)?;
                    }
                    (_, Value::Count(count)) => encoder.encode_gauge(count)?,
                    (_, Value::Number(number)) => encoder.encode_gauge(number)?,
                    (_, Value::Histogram(histogram)) => histogram.encode(encoder)?,
                    (Kind::Histogram(bounds), Value::Buckets { sum, counts }) => {
                        let bounds = bounds.iter().copied().chain([f64::INFINITY]);
                        let buckets: Vec<_> = bounds.zip(counts.iter().copied()).collect();
                        let count = counts.iter().sum();
                        encoder.encode_histogram::<NoLabelSet>(*sum, count, &buckets, None)?;
                    }
                    (_, Value::Buckets { .. }) => return Err(fmt::Error),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        vec![
            Sample::new(Metric::Packets, &["e\"\\\n\u{1b}0", "rx"], 7_u64),
            Sample::new(Metric::RxUsecs, &["eth0"], 75e-6),
            Sample::new(Metric::RxUsecs, &["eth1"], 0.0),
            Sample::new(Metric::Build, &["0.1.0"], true),
        ]
    }

    #[test]
    fn series_of_a_metric_stand_together_below_one_description() {
        let text = encode(&samples(), Format::OpenMetrics);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("# HELP")).collect();
        assert_eq!(
            lines,
            [
                "# TYPE earmark_nic_coalesce_rx_seconds gauge",
                "# UNIT earmark_nic_coalesce_rx_seconds seconds",
                "earmark_nic_coalesce_rx_seconds{device=\"eth0\"} 0.000075",
                "earmark_nic_coalesce_rx_seconds{device=\"eth1\"} 0.0",
                "# TYPE earmark_nic_packets counter",
                "earmark_nic_packets_total{device=\"e\\\"\\\\\\\\\\\\n\\\\u{1b}0\",direction=\"rx\"} 7",
                "# TYPE earmark_build info",
                "earmark_build_info{version=\"0.1.0\"} 1",
                "# EOF",
            ]
        );
    }

    #[test]
    fn the_plain_format_has_no_words_of_the_other() {
        let text = encode(&samples(), Format::Plain);
        for line in ["# TYPE earmark_nic_packets_total counter", "# TYPE earmark_build_info gauge"]
        {
            assert!(text.lines().any(|it| it == line), "{text}");
        }
        assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
    }
}
