//! Round trips as tools print them: each part of a text is a series with what the tool said of it.

mod ntp;
mod ping;
mod prose;
mod samples;
mod tools;
mod verdict;

use schemars::JsonSchema;
use serde::Serialize;

use crate::kind::InputKind;

pub(crate) use prose::{NumberColumn, figures};
use samples::Samples;
pub use verdict::RoundTripBounds;
pub(crate) use verdict::{Beside, verdict};

/// No round trip takes longer than a year.
const LONGEST_US: f64 = 3.2e13;

/// No text has more series that are kept.
pub(crate) const MOST_SERIES: usize = 1024;

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
    pub(crate) samples: Samples,
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
        self.samples.add(us);
    }

    /// Takes what the next piece of the same text says: figures that the tool printed are those of
    /// all.
    pub(crate) fn absorb(&mut self, next: Self) {
        self.count = match (self.samples.is_empty(), next.samples.is_empty()) {
            (false, true) => self.count,
            (true, true) => self.count.max(next.count),
            (_, false) => self.samples.count() + next.count,
        };
        self.samples.absorb(next.samples);
        self.min_us = next.min_us.or(self.min_us);
        self.mean_us = next.mean_us.or(self.mean_us);
        self.max_us = next.max_us.or(self.max_us);
        self.lost = next.lost.or(self.lost);
    }

    /// Whether there is any figure.
    fn says_something(&self) -> bool {
        let printed = [self.min_us, self.mean_us, self.p50_us, self.max_us, self.per_s];
        !self.samples.is_empty() || printed.iter().any(Option::is_some)
    }

    /// Figures that follow from samples stand where the tool printed none.
    pub(crate) fn complete(mut self) -> Option<Self> {
        if !self.samples.is_empty() {
            let mut sorted = self.samples.kept().to_vec();
            sorted.sort_by(f64::total_cmp);
            let at = |part: f64| sorted[((sorted.len() - 1) as f64 * part).round() as usize];
            let (least, most) = self.samples.ends();
            self.min_us = self.min_us.or(Some(least));
            self.max_us = self.max_us.or(Some(most));
            self.p50_us = self.p50_us.or(Some(at(0.5)));
            self.p99_us = self.p99_us.or((sorted.len() >= 100).then(|| at(0.99)));
            self.mean_us = self.mean_us.or(Some(self.samples.mean()));
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

    /// Half a round trip takes half as long.
    pub(crate) fn whole(&self, us: f64) -> f64 {
        if self.is_half { 2.0 * us } else { us }
    }
}

/// The series of a part, not yet [complete](RoundTrips::complete), and how many of its lines say
/// nothing. `None`: there is no round trip.
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
    let series: Vec<RoundTrips> = series.into_iter().filter(RoundTrips::says_something).collect();
    (!series.is_empty()).then_some((series, unread))
}

/// The series of a value of JSON that iperf3 printed.
pub(crate) fn iperf3(value: &serde_json::Value) -> Option<RoundTrips> {
    tools::iperf3(value).filter(RoundTrips::says_something)
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
