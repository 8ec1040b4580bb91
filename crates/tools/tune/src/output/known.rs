//! What programs print, and the figure of each that counts: the one that it sums up itself.

use crate::goal::Sense::{self, Max, Min};

pub(super) struct Known {
    pub(super) program: &'static str,
    pub(super) what: &'static str,
    pub(super) better: Sense,
    pub(super) locator: &'static str,
}

const fn known(
    program: &'static str,
    what: &'static str,
    better: Sense,
    locator: &'static str,
) -> Known {
    Known { program, what, better, locator }
}

pub(super) const KNOWN: [Known; 17] = [
    known(
        "netperf",
        "transactions a second",
        Max,
        r"(?m)^bytes +[Bb]ytes +bytes +bytes +secs\. +per sec.*\n\s*(?:\d+ +){4}[\d.]+ +(?P<value>[\d.]+)",
    ),
    known(
        "netperf",
        "throughput",
        Max,
        r"(?m)^bytes +bytes +bytes +secs\. +10\^\d+bits/sec.*\n\s*(?:\d+ +){3}[\d.]+ +(?P<value>[\d.]+)",
    ),
    known(
        "netperf",
        "throughput as received",
        Max,
        r"(?m)^bytes +bytes +secs +# +# +10\^\d+bits/sec.*\n\s*.*\n\d+ +[\d.]+ +\d+ +(?P<value>[\d.]+)",
    ),
    known("sockperf", "latency in us", Min, r"Summary: Latency is (?P<value>[\d.]+) usec"),
    known("sockperf", "messages a second", Max, r"Summary: Message Rate is (?P<value>[\d.]+) "),
    known(
        "ping",
        "mean round trip in us",
        Min,
        r"(?m)^(?:rtt|round-trip) min/avg/max\S* = [\d.]+/(?P<value>[\d.]+)/\S+ (?P<unit>ms)",
    ),
    known(
        "iperf3",
        "Mbit/s as received, all streams",
        Max,
        r"(?m)^\[SUM\] .* (?P<value>[\d.]+) (?P<unit>[KMGT]?bits)/sec.*receiver",
    ),
    known(
        "iperf3",
        "Mbit/s as received",
        Max,
        r"(?m)^\[ *\d+\] .* (?P<value>[\d.]+) (?P<unit>[KMGT]?bits)/sec.*receiver",
    ),
    known("iperf3", "bit/s as received", Max, ".end.sum_received.bits_per_second"),
    known("iperf3", "bit/s", Max, ".end.sum.bits_per_second"),
    known(
        "wrk",
        "median latency in us",
        Min,
        r"(?m)^ +50(?:\.0+)?% +(?P<value>[\d.]+)(?P<unit>us|ms|s|m)\s*$",
    ),
    known("wrk", "requests a second", Max, r"(?m)^Requests/sec: +(?P<value>[\d.]+)"),
    known("memtier_benchmark", "operations a second", Max, r"(?m)^Totals +(?P<value>[\d.]+)"),
    known(
        "fio",
        "mean latency in us",
        Min,
        r"(?m)^ +lat \((?P<unit>[num]sec)\): min=.*avg= *(?P<value>[\d.]+)",
    ),
    // Of what was not done, the mean is 0.
    known(
        "fio",
        "mean latency in us",
        Min,
        r#""lat_(?P<unit>ns)" *: *\{\s*"min" *: *\d+,\s*"max" *: *\d+,\s*"mean" *: *(?P<value>[1-9][\d.]*)"#,
    ),
    known("redis-benchmark", "requests a second", Max, r"(?P<value>[\d.]+) requests per second"),
    known("redis-benchmark", "requests a second", Max, r#"(?m)^"[^"]+","(?P<value>[\d.]+)""#),
];
