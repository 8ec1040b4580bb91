//! The demo's table and its report.

use super::{Demo, Row, conclusions};
use bench::measurement::Measurement;
use report::panels::{Curve, Panel, Picture};
use report::terminal::Table;
use report::terminal::number;
use report::{self, Cell, Report, TradeoffChart, TradeoffPoint};

/// The headers of the table on the terminal (traffic, figure, unit), and which are left out
/// first: to be read first is what happens when both kinds of traffic are there.
const HEADERS: [(&str, u8); 13] = [
    ("strategy", 0),
    ("both:\nround trip\np50 us", 0),
    ("both:\nround trip\np99 us", 1),
    ("both:\nround trip\nmax us", 6),
    ("both:\nNIC\nint/s", 0),
    ("both:\nbulk\nGbit/s", 3),
    ("both:\nNIC\ncores", 5),
    ("both:\nhosts\ncores", 4),
    ("alone:\nround trip\np50 us", 1),
    ("alone:\nround trip\np99 us", 5),
    ("alone:\nbulk\nGbit/s", 2),
    ("alone:\nbulk\nint/s", 7),
    ("alone:\nbulk\npkts/int", 7),
];

/// One row for each strategy.
pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(HEADERS).with_more("--json FILE");
    for row in rows {
        table.add_row(cells(row));
    }
    table
}

fn cells(row: &Row) -> Vec<String> {
    let latency = |measured: &Measurement| {
        let latency = measured.latency_us.as_ref();
        [latency.map(|l| l.p50), latency.map(|l| l.p99), latency.map(|l| l.max)]
            .map(|value| number(value, 0))
    };
    let gigabits = |measured: &Measurement| number(measured.bulk_bits_per_s.map(|b| b / 1e9), 2);
    let interrupts = |measured: &Measurement| number(measured.interrupts_per_s, 0);
    let [alone_p50, alone_p99, _] = latency(&row.round_trips);
    let [both_p50, both_p99, both_max] = latency(&row.both);
    vec![
        row.setting.clone(),
        both_p50,
        both_p99,
        both_max,
        interrupts(&row.both),
        gigabits(&row.both),
        number(row.both.cpu.map(|cpu| cpu.nic), 2),
        number(row.both.cpu.map(|cpu| cpu.host), 2),
        alone_p50,
        alone_p99,
        gigabits(&row.bulk),
        interrupts(&row.bulk),
        number(row.bulk.packets_per_interrupt, 1),
    ]
}

/// The whole report.
pub(super) fn report(demo: &Demo) -> Report {
    let environment = demo.rows.first().map(|row| &row.both.environment);
    Report {
        title: "What interrupt moderation does to latency".into(),
        subtitle: "TCP round trips, a bulk flow, and both at once between two Linux hosts on this machine, \
                   under eight strategies of one NIC"
            .into(),
        made_at: environment.map(|environment| environment.date.clone()).unwrap_or_default(),
        summary: demo.summary.clone(),
        table: report_table(&demo.rows),
        latency: Some(latency(&demo.rows)),
        tradeoff: TradeoffChart {
            title: "Both at once: latency against interrupts".into(),
            note: conclusions::load(&demo.rows),
            points: demo.rows.iter().filter_map(point).collect(),
        },
        environment: environment.map(bench::environment::Environment::entries).unwrap_or_default(),
    }
}

/// Which curves are drawn, in the order in which a picture's colours are those of the page's.
const DRAWN: [&str; 4] = ["delay:75", "stream:75", "disabled", "marked:75"];

/// How late round trips are, alone and beside a bulk flow.
fn latency(rows: &[Row]) -> Picture {
    let panel = |title: &str, of: fn(&Row) -> &Measurement| {
        let drawn = DRAWN.iter().filter_map(|name| rows.iter().find(|row| row.setting == *name));
        let curves =
            drawn.map(|row| Curve { name: row.setting.clone(), points: cumulative(of(row)) });
        Panel { title: title.into(), curves: curves.collect() }
    };
    Picture {
        summary: "The share of round trips that took no longer than a time.".into(),
        x_title: "round trip, us (logarithmic)".into(),
        has_logarithmic_x: true,
        change: None,
        panels: vec![
            panel("Alone: share", |row| &row.round_trips),
            panel("Beside a bulk flow, each from when it fell due: share", |row| &row.both),
        ],
    }
}

/// Latency, and the fraction of round trips that took no longer: the few beyond 99.9 % would take
/// half of the picture.
fn cumulative(measured: &Measurement) -> Vec<(f64, f64)> {
    let total = measured.latency.count as f64;
    let mut seen = 0.0;
    let step = |&[nanos, count]: &[i64; 2]| {
        seen += count as f64;
        (nanos as f64 / 1e3, seen / total)
    };
    let mut points: Vec<(f64, f64)> = measured.latency.buckets.iter().map(step).collect();
    points.truncate(points.partition_point(|(_, share)| *share < 0.999) + 1);
    points
}

fn point(row: &Row) -> Option<TradeoffPoint> {
    Some(TradeoffPoint {
        name: row.setting.clone(),
        latency_us: row.both.latency_us.as_ref()?.p50,
        interrupts_per_s: row.both.interrupts_per_s?,
        host_busy: None,
        bulk_mbit: row.both.bulk_bits_per_s.map(|bits| bits / 1e6),
    })
}

/// Where the round trip and the interrupts of both at once stand in it.
const BOTH_P50: usize = 1;
const BOTH_INTERRUPTS: usize = 4;

fn report_table(rows: &[Row]) -> report::Table {
    let least = |of: fn(&Row) -> f64| rows.iter().map(of).fold(f64::INFINITY, f64::min);
    let p50 = |row: &Row| row.both.latency_us.as_ref().map_or(f64::NAN, |latency| latency.p50);
    let interrupts = |row: &Row| row.both.interrupts_per_s.unwrap_or(f64::NAN);
    let (least_p50, least_interrupts) = (least(p50), least(interrupts));
    let row = |row: &Row| {
        let emphasis = |column: usize, text: String| match column {
            BOTH_P50 => graded(text, p50(row) / least_p50),
            BOTH_INTERRUPTS => graded(text, interrupts(row) / least_interrupts),
            _ => Cell::plain(text),
        };
        cells(row).into_iter().enumerate().map(|(column, text)| emphasis(column, text)).collect()
    };
    report::Table {
        headers: HEADERS.map(|(name, _)| name.replace('\n', " ")).to_vec(),
        rows: rows.iter().map(row).collect(),
    }
}

/// Within a tenth of the best is good; half as much again is bad.
fn graded(text: String, times_best: f64) -> Cell {
    match times_best {
        times if times <= 1.1 => Cell::good(text),
        times if times >= 1.5 => Cell::bad(text),
        _ => Cell::plain(text),
    }
}
