//! Round trips as tools print them: each part of a text is a series with what the tool said of it.

mod ntp;
mod ping;
mod prose;
mod tools;
mod verdict;

use schemars::JsonSchema;
use serde::Serialize;

use crate::kind::InputKind;

pub(crate) use prose::{column, figures};
pub use verdict::RoundTripBounds;
pub(crate) use verdict::{Beside, verdict};

/// No round trip takes longer than a year.
const LONGEST_US: f64 = 3.2e13;

/// No series has more samples; further ones are counted.
const MOST_SAMPLES: usize = 1 << 20;

/// Round trips of one run of a tool. Times are microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RoundTrips {
    /// The tool, and the far host if it is named.
    pub source: String,
    /// The far host.
    pub host: Option<String>,
    /// Where it begins: input and line.
    pub at: String,
    /// Whether each time is half a round trip, as sockperf and qperf print them.
    pub is_half: bool,
    /// Whether it is a mean over many packets, or under a load of its own.
    pub is_smoothed: bool,
    /// How many round trips there were.
    pub count: u64,
    /// The shortest of all.
    pub min_us: Option<f64>,
    /// The mean of all.
    pub mean_us: Option<f64>,
    /// Half of them take longer.
    pub p50_us: Option<f64>,
    /// Of a hundred, one takes longer.
    pub p99_us: Option<f64>,
    /// The longest of all.
    pub max_us: Option<f64>,
    /// How many of them were done in a second, one after the other.
    pub per_s: Option<f64>,
    /// How many were never answered.
    pub lost: Option<u64>,
    #[serde(skip)]
    pub(crate) samples: Vec<f64>,
}

impl RoundTrips {
    fn of(source: &str, host: Option<&str>) -> Self {
        let source = host.map_or(source.to_owned(), |host| format!("{source} {host}"));
        Self { source, host: host.map(str::to_owned), ..Self::default() }
    }

    fn add(&mut self, us: f64) {
        if !(0.0..LONGEST_US).contains(&us) {
            return;
        }
        self.count += 1;
        if self.samples.len() < MOST_SAMPLES {
            self.samples.push(us);
        }
    }

    /// Figures that follow from samples take the place of those that the tool printed.
    fn complete(mut self) -> Option<Self> {
        if !self.samples.is_empty() {
            let mut sorted = self.samples.clone();
            sorted.sort_by(f64::total_cmp);
            let at = |part: f64| sorted[((sorted.len() - 1) as f64 * part).round() as usize];
            self.min_us = self.min_us.or(Some(at(0.0)));
            self.max_us = self.max_us.or(Some(at(1.0)));
            self.p50_us = self.p50_us.or(Some(at(0.5)));
            self.p99_us = self.p99_us.or((sorted.len() >= 100).then(|| at(0.99)));
            let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
            self.mean_us = self.mean_us.or(Some(mean));
        }
        // Not once in a year: no rate.
        self.per_s = self.per_s.filter(|per_s| (1e6 / LONGEST_US..1e12).contains(per_s));
        if let Some(per_s) = self.per_s {
            self.mean_us = self.mean_us.or(Some(1e6 / per_s));
        }
        let has_figure =
            [self.min_us, self.mean_us, self.p50_us, self.max_us].iter().any(Option::is_some);
        has_figure.then_some(self)
    }

    /// The samples in their order; none if only figures are known.
    pub fn samples_us(&self) -> &[f64] {
        &self.samples
    }

    /// Half a round trip takes half as long.
    pub(crate) fn whole(&self, us: f64) -> f64 {
        if self.is_half { 2.0 * us } else { us }
    }
}

/// The series of a part, and how many of its lines say nothing. `None`: there is no round trip.
pub(crate) fn read(kind: InputKind, lines: &[String]) -> Option<(Vec<RoundTrips>, usize)> {
    let (series, unread) = match kind {
        InputKind::Ping => ping::read(lines),
        InputKind::Sockperf => tools::sockperf(lines),
        InputKind::Netperf => tools::netperf(lines),
        InputKind::Qperf => tools::qperf(lines),
        InputKind::Chrony => ntp::chrony(lines),
        InputKind::Ntpd => ntp::ntpd(lines),
        _ => return None,
    };
    let series: Vec<RoundTrips> = series.into_iter().filter_map(RoundTrips::complete).collect();
    (!series.is_empty()).then_some((series, unread))
}

/// The series of a value of JSON that iperf3 printed.
pub(crate) fn iperf3(value: &serde_json::Value) -> Option<RoundTrips> {
    tools::iperf3(value).and_then(RoundTrips::complete)
}

/// Logs of NTP programs, which begin with a date or a number of a day.
pub(crate) fn is_log(line: &str) -> Option<InputKind> {
    ntp::is_log(line)
}

/// A number with a unit of time, as microseconds; without one it is in `default` microseconds.
fn micros(number: &str, unit: &str, default: f64) -> Option<f64> {
    let number: f64 = number.trim().parse().ok()?;
    let unit = match unit.trim().trim_end_matches(['.', ',', ';', ')']) {
        "us" | "µs" | "μs" | "usec" | "usecs" | "microseconds" => 1.0,
        "ms" | "msec" | "msecs" | "milliseconds" => 1e3,
        "ns" | "nsec" | "nanoseconds" => 1e-3,
        "s" | "sec" | "secs" | "seconds" => 1e6,
        _ => default,
    };
    Some(number * unit).filter(|us| (0.0..LONGEST_US).contains(us))
}
