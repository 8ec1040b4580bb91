//! Logs of chrony and ntpd: the delay is the round trip without the time in the server.
//!
//! Formats: chrony.conf(5), `log measurements`; chronyc(1), `ntpdata`; ntpd's monitoring options,
//! `peerstats` and `rawstats`; `ntpq -p`.

use std::collections::BTreeMap;

use super::{RoundTrips, micros};
use crate::kind::InputKind;

/// Columns of a line of chrony's `measurements.log`: the peer, and its delay in seconds.
const CHRONY: (usize, usize) = (2, 12);
/// The same of ntpd's `peerstats`.
const PEERSTATS: (usize, usize) = (2, 5);

pub(super) fn is_log(line: &str) -> Option<InputKind> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_date = |word: &str| {
        let parts: Vec<&str> = word.split('-').collect();
        parts.len() == 3 && parts[0].len() == 4 && parts.iter().all(|it| it.parse::<u32>().is_ok())
    };
    let has = |at: usize| words.get(at).is_some_and(|word| word.parse::<f64>().is_ok());
    match words.len() {
        16.. if is_date(words[0]) && words[1].contains(':') && has(CHRONY.1) => {
            Some(InputKind::Chrony)
        }
        7..=9 if is_day(words[0]) && has(1) && words[2].contains(['.', ':']) && has(5) => {
            Some(InputKind::Ntpd)
        }
        8.. if is_day(words[0]) && has(1) && (4..8).all(has) => Some(InputKind::Ntpd),
        _ => None,
    }
}

/// The day that ntpd counts (MJD), of this century.
fn is_day(word: &str) -> bool {
    word.parse().is_ok_and(|day: u32| (50_000..90_000).contains(&day))
}

/// RoundTrips by their peers, in order.
#[derive(Default)]
struct ByPeer(BTreeMap<String, RoundTrips>);

impl ByPeer {
    fn add(&mut self, tool: &str, peer: &str, us: f64) {
        let series = self.0.entry(peer.to_owned());
        series.or_insert_with(|| RoundTrips::of(tool, Some(peer))).add(us);
    }

    fn all(self) -> Vec<RoundTrips> {
        self.0.into_values().collect()
    }
}

pub(super) fn chrony(lines: &[String]) -> (Vec<RoundTrips>, usize) {
    let mut peers = ByPeer::default();
    let mut unread = 0;
    let mut address = String::new();
    for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (peer, delay) = CHRONY;
        if is_log(line) == Some(InputKind::Chrony) {
            if let Some(us) = micros(words[delay], "s", 1e6) {
                peers.add("chrony", words[peer], us);
            }
        } else if let Some((name, value)) = line.split_once(':') {
            let value = value.trim();
            match name.trim() {
                "Remote address" => address = value.split(' ').next().unwrap_or_default().into(),
                "Peer delay" => {
                    let mut words = value.split_whitespace();
                    let number = words.next().unwrap_or_default();
                    if let Some(us) = micros(number, words.next().unwrap_or("s"), 1e6) {
                        peers.add("chrony", &address, us);
                    }
                }
                _ => {}
            }
        } else {
            unread += usize::from(!line.starts_with('=') && !line.contains("Date (UTC)"));
        }
    }
    (peers.all(), unread)
}

pub(super) fn ntpd(lines: &[String]) -> (Vec<RoundTrips>, usize) {
    let mut peers = ByPeer::default();
    let mut unread = 0;
    let mut is_table = false;
    for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.contains("refid") && line.contains("delay") {
            is_table = true;
        } else if is_table && words.len() >= 10 {
            // remote refid st t when poll reach delay offset jitter, in milliseconds
            let peer = words[0].trim_start_matches(['*', '+', '-', '#', 'o', 'x', '.']);
            match micros(words[7], "ms", 1e3) {
                Some(us) if us > 0.0 => peers.add("ntpq", peer, us),
                _ => {}
            }
        } else if let Some(us) = raw(&words) {
            peers.add("ntpd", words[2], us);
        } else if is_log(line) == Some(InputKind::Ntpd) {
            let (peer, delay) = PEERSTATS;
            if let Some(us) = micros(words[delay], "s", 1e6) {
                peers.add("ntpd", words[peer], us);
            }
        } else {
            unread += usize::from(!line.starts_with('='));
        }
    }
    (peers.all(), unread)
}

/// The delay of a line of `rawstats`: day, second, source, destination, and four timestamps in
/// seconds since 1900.
fn raw(words: &[&str]) -> Option<f64> {
    if words.len() < 8 || !is_day(words[0]) {
        return None;
    }
    // Doubles have a quarter of a microsecond of a time since 1900: the day is taken away first.
    let second = |at: usize| {
        let (whole, part) = words[at].split_once('.')?;
        let whole: i64 = whole.parse().ok()?;
        let part: f64 = format!("0.{part}").parse().ok()?;
        (whole > 3_000_000_000).then_some((whole, part))
    };
    let stamps = [second(4)?, second(5)?, second(6)?, second(7)?];
    let first = stamps[0].0;
    let us = stamps.map(|(whole, part)| ((whole - first) as f64 + part) * 1e6);
    Some((us[3] - us[0]) - (us[2] - us[1]))
}
