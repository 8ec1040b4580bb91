//! `ping` of iputils, BusyBox and the BSDs.

use super::{RoundTrips, micros};

pub(super) fn read(lines: &[String]) -> (Vec<RoundTrips>, usize) {
    let host = lines.iter().find_map(|line| host(line));
    let mut series = RoundTrips::of("ping", host.as_deref());
    let mut unread = 0;
    for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
        if let Some(us) = sample(line) {
            series.add(us);
        } else if line.contains("min/avg/max") {
            unread += usize::from(summary(line, &mut series).is_none());
        } else if let Some((sent, received)) = packets(line) {
            series.lost = Some(sent.saturating_sub(received));
            if series.samples.is_empty() {
                series.count = received;
            }
        } else {
            let is_other = line.starts_with("PING ") || line.starts_with("---") || is_remark(line);
            unread += usize::from(!is_other);
        }
    }
    (vec![series], unread)
}

fn is_remark(line: &str) -> bool {
    ["no answer yet", "Request timeout", "Destination", "From "].iter().any(|it| line.contains(it))
}

fn host(line: &str) -> Option<String> {
    let word = match line.trim().strip_prefix("PING ") {
        Some(rest) => rest.split_whitespace().next()?,
        None if line.contains(" bytes from ") => {
            line.split(" bytes from ").nth(1)?.split([' ', ':']).next()?
        }
        None => line.trim().strip_prefix("--- ")?.split_whitespace().next()?,
    };
    Some(word.trim_matches(['(', ')', ':', ',']).to_owned())
}

/// `64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.224 ms`
fn sample(line: &str) -> Option<f64> {
    if !line.contains(" bytes from ") {
        return None;
    }
    let (_, rest) = line.split_once("time=")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let unit = rest[end..].split_whitespace().next().unwrap_or("ms");
    micros(&rest[..end], unit, 1e3)
}

/// `rtt min/avg/max/mdev = 0.577/0.605/0.627/0.020 ms`
fn summary(line: &str, series: &mut RoundTrips) -> Option<()> {
    let (_, rest) = line.split_once('=')?;
    let mut words = rest.split_whitespace();
    let numbers = words.next()?;
    let unit = words.next().unwrap_or("ms");
    let values: Vec<f64> =
        numbers.split('/').map_while(|number| micros(number, unit, 1e3)).collect();
    let [min, mean, max, ..] = values[..] else { return None };
    (series.min_us, series.mean_us, series.max_us) = (Some(min), Some(mean), Some(max));
    Some(())
}

/// `10 packets transmitted, 10 received, 0% packet loss, time 9012ms`
fn packets(line: &str) -> Option<(u64, u64)> {
    let (sent, rest) = line.split_once(" packets transmitted, ")?;
    let received = rest.split_whitespace().next()?;
    Some((sent.trim().parse().ok()?, received.parse().ok()?))
}
