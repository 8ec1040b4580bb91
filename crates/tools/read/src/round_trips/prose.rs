//! Times without a tool: a column of numbers, and figures in sentences.

use std::sync::OnceLock;

use regex_lite::Regex;

use super::{RoundTrips, micros};

/// So many lines of a number are a column.
const LEAST: u64 = 3;

/// A column of numbers, one a line, with a unit or in microseconds.
pub(crate) struct NumberColumn {
    series: RoundTrips,
    /// Lines that are no number.
    unread: u64,
}

impl Default for NumberColumn {
    fn default() -> Self {
        Self { series: RoundTrips::of("column", None), unread: 0 }
    }
}

impl NumberColumn {
    /// Takes further lines of a text.
    pub(crate) fn add(&mut self, lines: &[String]) {
        for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
            match one(line) {
                Some(us) => self.series.add(us),
                None => self.unread += 1,
            }
        }
    }

    /// The column, with how many lines are no number; `None`: it is none.
    pub(crate) fn finish(self) -> Option<(RoundTrips, usize)> {
        let is_column = self.series.count >= LEAST && self.unread * 10 <= self.series.count;
        is_column.then_some((self.series, self.unread as usize))
    }
}

fn one(line: &str) -> Option<f64> {
    let line = line.trim_end_matches([',', ';']);
    let end = line.find(|c: char| !c.is_ascii_digit() && !".eE+-".contains(c));
    let (number, unit) = line.split_at(end.unwrap_or(line.len()));
    let is_unit = unit.trim().chars().count() <= 4 && !unit.contains(|c: char| c.is_ascii_digit());
    if is_unit { micros(number, unit, 1.0) } else { None }
}

fn pattern(cell: &'static OnceLock<Regex>, text: &str) -> &'static Regex {
    cell.get_or_init(|| Regex::new(text).expect("it is well-formed"))
}

/// Figures in a text: means, minima and rates, as people write them.
///
/// A mean and the minimum near it make one series; a minimum that is said to be that of several is
/// that of each.
pub(crate) fn figures(lines: &[String]) -> Vec<RoundTrips> {
    static TIMES: OnceLock<Regex> = OnceLock::new();
    static RATES: OnceLock<Regex> = OnceLock::new();
    let times = pattern(
        &TIMES,
        r"(?i)\b(min|minimum|average|avg|mean|means|median)\b[^0-9.;]{0,60}?([0-9]+(?:\.[0-9]+)?)\s*(µs|μs|us|ms|usec|microseconds)(?:\s+and\s+([0-9]+(?:\.[0-9]+)?)\s*(?:µs|μs|us|ms|usec))?",
    );
    let rates = pattern(
        &RATES,
        r"(?i)([0-9][0-9,]*(?:\.[0-9]+)?)\s*(?:round trips|transactions|requests|trans\.?)?\s*(?:/s|per second|a second|per sec)\b",
    );
    let text = lines.join(" ");
    let (mut least, mut found) = (None, Vec::new());
    for figure in times.captures_iter(&text) {
        let word = figure[1].to_lowercase();
        let unit = &figure[3];
        let values = [figure.get(2), figure.get(4)].into_iter().flatten();
        for us in values.filter_map(|value| micros(value.as_str(), unit, 1.0)) {
            if word.starts_with("min") {
                least = Some(us);
                continue;
            }
            let mut series = RoundTrips::of("text", None);
            match word.as_str() {
                "median" => series.p50_us = Some(us),
                _ => series.mean_us = Some(us),
            }
            found.push(series);
        }
    }
    // "identical" and the like: a minimum of all.
    found.iter_mut().for_each(|series: &mut RoundTrips| series.min_us = least);
    for rate in rates.captures_iter(&text) {
        let before = &text[..rate.get(0).map_or(0, |whole| whole.start())];
        let near = before.char_indices().rev().nth(80).map_or(0, |(at, _)| at);
        let around = text[near..].chars().take(200).collect::<String>().to_lowercase();
        let is_of_round_trips = ["round trip", "transaction", "request", "netperf", "_rr"]
            .iter()
            .any(|word| around.contains(word));
        if !is_of_round_trips || around.contains("packets per") {
            continue;
        }
        let mut series = RoundTrips::of("text", None);
        series.per_s = rate[1].replace(',', "").parse().ok().filter(|rate: &f64| *rate > 0.0);
        found.push(series);
    }
    found
}
