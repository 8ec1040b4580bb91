//! sockperf, netperf, qperf and iperf3.

use serde_json::Value;

use super::{RoundTrips, micros};

/// sockperf prints half a round trip, unless it was asked for whole ones (`--full-rtt`).
pub(super) fn sockperf(lines: &[String]) -> (Vec<RoundTrips>, usize) {
    let mut series = RoundTrips::of("sockperf", None);
    series.is_half = true;
    for line in lines {
        let text = line.trim().trim_start_matches("sockperf:").trim();
        let last = |text: &str| {
            let number = text.rsplit('=').next()?.split_whitespace().next()?;
            micros(number, "us", 1.0)
        };
        if let Some(rest) = text.split_once("Latency is ").map(|(_, rest)| rest) {
            series.mean_us = rest.split_whitespace().next().and_then(|it| micros(it, "us", 1.0));
        } else if let Some(rest) = text.split_once("Round trip is ").map(|(_, rest)| rest) {
            series.mean_us = rest.split_whitespace().next().and_then(|it| micros(it, "us", 1.0));
            series.is_half = false;
        } else if text.contains("<MAX> observation") {
            series.max_us = last(text);
        } else if text.contains("<MIN> observation") {
            series.min_us = last(text);
        } else if text.contains("percentile 50.0") {
            series.p50_us = last(text);
        } else if text.contains("percentile 99.000") {
            series.p99_us = last(text);
        } else if let Some((_, rest)) = text.split_once("ReceivedMessages=") {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
            series.count = digits.and_then(|it| it.parse().ok()).unwrap_or(series.count);
        }
    }
    (vec![series], 0)
}

/// netperf: the table of TCP_RR and UDP_RR, selected outputs as CSV (`-o`) or as pairs (`-k`).
pub(super) fn netperf(lines: &[String]) -> (Vec<RoundTrips>, usize) {
    let title = lines.iter().find(|line| line.contains("REQUEST/RESPONSE TEST"));
    let host = title
        .and_then(|line| line.split_once(" to "))
        .and_then(|(_, rest)| rest.split_whitespace().next());
    let mut series = RoundTrips::of("netperf", host);
    let mut header: Option<Vec<String>> = None;
    for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
        if line.contains(',') && line.contains("Latency") {
            header = Some(line.split(',').map(|name| name.trim().to_owned()).collect());
        } else if let Some(names) = header.take() {
            for (name, value) in names.iter().zip(line.split(',')) {
                take_netperf(&name.to_lowercase(), value, &mut series);
            }
        } else if let Some((name, value)) = line.split_once('=') {
            take_netperf(&name.to_lowercase().replace('_', " "), value, &mut series);
        } else {
            let numbers: Vec<f64> =
                line.split_whitespace().map_while(|it| it.parse().ok()).collect();
            // Send and receive size, request and response size, seconds, transactions a second.
            if let [_, _, _, _, seconds, rate, ..] = numbers[..]
                && line.split_whitespace().count() == numbers.len()
            {
                series.per_s = Some(rate);
                series.count = (seconds * rate).max(0.0) as u64;
            }
        }
    }
    (vec![series], 0)
}

fn take_netperf(name: &str, value: &str, series: &mut RoundTrips) {
    let Some(number) = micros(value, "us", 1.0) else { return };
    let field = match name {
        _ if name.contains("minimum latency") || name == "min latency" => &mut series.min_us,
        _ if name.contains("maximum latency") || name == "max latency" => &mut series.max_us,
        _ if name.contains("mean latency") => &mut series.mean_us,
        _ if name.contains("50th percentile") || name == "p50 latency" => &mut series.p50_us,
        _ if name.contains("99th percentile") || name == "p99 latency" => &mut series.p99_us,
        _ if name.contains("transaction rate") || name == "throughput" => &mut series.per_s,
        _ => return,
    };
    *field = Some(number);
}

/// qperf prints half a round trip: `latency  =  12.3 us`, below the name of the test.
pub(super) fn qperf(lines: &[String]) -> (Vec<RoundTrips>, usize) {
    let mut series = RoundTrips::of("qperf", None);
    series.is_half = true;
    for line in lines {
        let Some((name, value)) = line.split_once('=') else { continue };
        if name.trim() == "latency" {
            let mut words = value.split_whitespace();
            let (number, unit) = (words.next().unwrap_or_default(), words.next().unwrap_or("us"));
            series.mean_us = micros(number, unit, 1.0);
        }
    }
    (vec![series], 0)
}

/// iperf3: the kernel's smoothed round trip (`tcpi_rtt`), at the end of each interval.
pub(super) fn iperf3(value: &Value) -> Option<RoundTrips> {
    let host = value.pointer("/start/connected/0/remote_host").and_then(Value::as_str);
    let intervals = value.get("intervals")?.as_array()?;
    let mut series = RoundTrips::of("iperf3", host);
    series.is_smoothed = true;
    for stream in intervals.iter().filter_map(|it| it.get("streams")?.as_array()).flatten() {
        if let Some(rtt) = stream.get("rtt").and_then(Value::as_f64).filter(|rtt| *rtt > 0.0) {
            series.add(rtt);
        }
    }
    let sender = |name: &str| {
        let path = format!("/end/streams/0/sender/{name}");
        value.pointer(&path).and_then(Value::as_f64).filter(|it| *it > 0.0)
    };
    (series.min_us, series.mean_us, series.max_us) =
        (sender("min_rtt"), sender("mean_rtt"), sender("max_rtt"));
    Some(series)
}
