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
        /// One of the values, which OpenMetrics shows beside its bucket.
        exemplar: Option<BucketExemplar>,
    },
}

/// A value with what is known of it beside the labels of its metric.
#[derive(Clone, Debug, PartialEq)]
pub struct BucketExemplar {
    /// Names and values of labels: together 128 characters at most.
    pub labels: Vec<(&'static str, String)>,
    /// The value, in the unit of its metric.
    pub value: f64,
    /// When it was, in seconds since 1970.
    pub at: f64,
}

impl BucketExemplar {
    /// As a line of OpenMetrics ends with it.
    fn text(&self) -> String {
        let value = |value: &str| label(value).replace('\\', "\\\\").replace('"', "\\\"");
        let labels = self.labels.iter().map(|(name, it)| format!("{name}=\"{}\"", value(it)));
        let labels = labels.collect::<Vec<_>>().join(",");
        format!(" # {{{labels}}} {} {:.3}", self.value, self.at)
    }
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
    let series = bucket_series(&ordered);
    registry.register_collector(Box::new(Ordered(ordered)));
    let mut written = String::new();
    let outcome = match format {
        Format::OpenMetrics => text::encode(&mut written, &registry),
        Format::Plain => prometheus_text::encode(&mut written, &registry),
    };
    outcome.expect("a string takes any text");
    if format == Format::OpenMetrics { with_exemplars(&written, series) } else { written }
}

/// A series that has buckets counted elsewhere.
struct BucketSeries {
    /// How each of its lines begins.
    begin: String,
    /// How many they are.
    lines: usize,
    /// The end of one of them.
    exemplar: Option<(usize, String)>,
}

/// Those of samples, in their order.
fn bucket_series(ordered: &[Sample]) -> Vec<BucketSeries> {
    let of = |sample: &Sample| {
        let family = sample.metric.family();
        let Kind::Histogram(bounds) = family.kind else { return None };
        let Value::Buckets { exemplar, .. } = &sample.value else { return None };
        let place = |it: &BucketExemplar| bounds.partition_point(|bound| *bound < it.value);
        let exemplar = exemplar.as_ref().map(|it| (place(it), it.text()));
        let begin = format!("{}_bucket{{", family.name());
        Some(BucketSeries { begin, lines: bounds.len() + 1, exemplar })
    };
    ordered.iter().filter_map(of).collect()
}

/// The text with exemplars, which the encoder has for histograms of its own alone.
fn with_exemplars(text: &str, series: Vec<BucketSeries>) -> String {
    let mut series = series.into_iter();
    let (mut now, mut number) = (series.next(), 0);
    let mut written = String::with_capacity(text.len());
    for line in text.lines() {
        written.push_str(line);
        if let Some(one) = now.as_ref().filter(|one| line.starts_with(&one.begin)) {
            let exemplar = one.exemplar.as_ref().filter(|(place, _)| *place == number);
            written.push_str(exemplar.map_or("", |(_, text)| text));
            number += 1;
            if number == one.lines {
                (now, number) = (series.next(), 0);
            }
        }
        written.push('\n');
    }
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
                    (Kind::Histogram(bounds), Value::Buckets { sum, counts, .. }) => {
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
    fn exemplars_stand_beside_the_bucket_of_their_value_in_the_newer_format_alone() {
        let buckets = |program: Option<&str>| {
            let exemplar = program.map(|program| BucketExemplar {
                labels: vec![("program", program.to_owned()), ("pid", "42".to_owned())],
                value: 3e-6,
                at: 7.5,
            });
            Value::Buckets { sum: 3e-6, counts: vec![0, 0, 1], exemplar }
        };
        let of = |device: &str, program| Sample {
            metric: Metric::Request,
            labels: vec![device.to_owned(), String::new(), "asks".to_owned()],
            value: buckets(program),
        };
        let bounds = match Metric::Request.family().kind {
            Kind::Histogram(bounds) => bounds,
            other => panic!("{other:?}"),
        };
        let mut samples = [of("a", None), of("b", Some("x\"y")), of("c", Some("z"))];
        for sample in &mut samples {
            let Value::Buckets { counts, .. } = &mut sample.value else { continue };
            counts.resize(bounds.len() + 1, 0);
        }
        let text = encode(&samples, Format::OpenMetrics);
        let with: Vec<&str> = text.lines().filter(|line| line.contains(" # {")).collect();
        let end =
            |program: &str| format!(" 1 # {{program=\"{program}\",pid=\"42\"}} 0.000003 7.500");
        assert_eq!(with.len(), 2, "{text}");
        for (line, (device, program)) in with.iter().zip([("b", "x\\\"y"), ("c", "z")]) {
            assert!(line.contains(&format!("device=\"{device}\"")), "{line}");
            assert!(line.contains("le=\"0.000004096\"") && line.ends_with(&end(program)), "{line}");
        }
        assert!(!encode(&samples, Format::Plain).contains(" # {"));
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
