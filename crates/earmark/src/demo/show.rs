//! The demo's tables and its report.

use super::{Demo, Findings, MODEL_CHUNK_BYTES, Row, conclusions};
use crate::command::page::encoded;
use bench::measurement::Measurement;
use nic::marker::Rules;
use report::panels::{Curve, Panel, Picture};
use report::terminal::Table;
use report::terminal::number;
use report::{self, Cell, Report, TradeoffChart, TradeoffPoint};

/// A table of rows: its headers (traffic, figure, unit) with what is left out first, its cells, and
/// where the round trip and the interrupts of both at once stand in it.
pub(super) struct Columns {
    headers: &'static [(&'static str, u8)],
    cells: fn(&Row) -> Vec<String>,
    both_p50: usize,
    both_interrupts: usize,
}

/// On real traffic.
pub(super) const LIVE: Columns = Columns {
    headers: &[
        ("strategy", 0),
        ("round trip\np50 us", 0),
        ("round trip\np99 us", 1),
        ("NIC\nint/s", 0),
        ("NIC\npkts/int", 2),
        ("NIC\ncores", 2),
        ("hosts\ncores", 1),
        ("bulk\nGbit/s", 2),
    ],
    cells: live_cells,
    both_p50: 1,
    both_interrupts: 3,
};

/// In the model.
pub(super) const MODEL: Columns = Columns {
    headers: &[
        ("strategy", 0),
        ("alone:\nround trip\np50 us", 1),
        ("alone:\nround trip\np99 us", 2),
        ("alone:\nNIC\nint/s", 2),
        ("both:\nround trip\np50 us", 0),
        ("both:\nround trip\np99 us", 1),
        ("both:\nNIC\nint/s", 0),
    ],
    cells: model_cells,
    both_p50: 4,
    both_interrupts: 6,
};

impl Columns {
    /// One row for each strategy.
    pub(super) fn table(&self, rows: &[Row]) -> Table {
        let mut table = Table::new(self.headers.iter().copied()).with_more("--json FILE");
        for row in rows {
            table.add_row((self.cells)(row));
        }
        table
    }
}

/// Median and 99th percentile of round trips, and interrupts a second.
fn figures(measured: &Measurement) -> [String; 3] {
    let latency = measured.latency_us.as_ref();
    let [p50, p99] = [latency.map(|it| it.p50), latency.map(|it| it.p99)];
    [p50, p99, measured.interrupts_per_s].map(|value| number(value, 0))
}

fn live_cells(row: &Row) -> Vec<String> {
    let both = &row.both;
    let cells = [
        number(both.packets_per_interrupt, 1),
        number(both.cpu.map(|cpu| cpu.nic), 2),
        number(both.cpu.map(|cpu| cpu.host), 2),
        number(both.bulk_bits_per_s.map(|bits| bits / 1e9), 2),
    ];
    [row.setting.clone()].into_iter().chain(figures(both)).chain(cells).collect()
}

fn model_cells(row: &Row) -> Vec<String> {
    let alone = row.round_trips.as_ref().map(figures).unwrap_or_default();
    [row.setting.clone()].into_iter().chain(alone).chain(figures(&row.both)).collect()
}

/// What hosts of the model are.
pub(super) fn machine(rows: &[Row]) -> &str {
    rows.first().map_or("", |row| &row.both.environment.machine)
}

/// What the page shows of settings like those of the demo, for `earmark page`.
pub(super) fn state(machine: &str, mark: Option<&Rules>) -> String {
    let mut state = format!("see?experiment=mixed&bulk-chunk={MODEL_CHUNK_BYTES}");
    // The page knows machines by name alone, and no files.
    if machine.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        state += &format!("&machine={machine}");
    }
    if let Some(rules) = mark {
        state += &format!("&mark={}", encoded(rules.to_string().as_bytes()));
    }
    state
}

/// The whole report; `state` is what the page is to show of it.
pub(super) fn report(demo: &Demo, state: &str) -> Report {
    let all = demo.live.rows.first().or(demo.model.rows.first());
    let environment = all.map(|row| &row.both.environment);
    let live = match &demo.not_measured {
        None => part("On this machine", String::new(), &demo.live, &LIVE),
        Some(why) => {
            Report { title: "On this machine".into(), summary: why.clone(), ..Report::default() }
        }
    };
    let before = format!("{}.\n", machine(&demo.model.rows));
    let mut model = part("In a model", before, &demo.model, &MODEL);
    model.summary += &format!(
        "\nTo turn its settings, and to see it packet by packet: \
         `earmark page '{state}'`."
    );
    Report {
        title: "What interrupt moderation does to latency".into(),
        subtitle:
            "TCP round trips alone and beside a bulk flow between two hosts: eight strategies \
                   of one NIC in a model, three of them on this machine"
                .into(),
        made_at: environment.map(|environment| environment.date.clone()).unwrap_or_default(),
        environment: environment.map(bench::environment::Environment::entries).unwrap_or_default(),
        parts: vec![model, live],
        ..Report::default()
    }
}

/// What was found in one world; `before` stands before its summary.
fn part(title: &str, before: String, found: &Findings, columns: &Columns) -> Report {
    Report {
        title: title.into(),
        summary: before + &found.summary,
        table: report_table(&found.rows, columns),
        latency: latency(&found.rows),
        tradeoff: TradeoffChart {
            title: "Both at once: latency against interrupts".into(),
            note: conclusions::load(&found.rows),
            points: found.rows.iter().filter_map(point).collect(),
            ..TradeoffChart::default()
        },
        ..Report::default()
    }
}

/// Which curves are drawn, in the order in which a picture's colours are those of the page's.
const DRAWN: [&str; 4] = ["delay:75", "stream:75", "disabled", "marked:75"];

/// How late round trips are, alone and beside a bulk flow.
fn latency(rows: &[Row]) -> Option<Picture> {
    let panel = |title: &str, of: fn(&Row) -> Option<&Measurement>| {
        let drawn = DRAWN.iter().filter_map(|name| rows.iter().find(|row| row.setting == *name));
        let curve =
            |row: &Row| Some(Curve { name: row.setting.clone(), points: cumulative(of(row)?) });
        let curves: Vec<_> = drawn.filter_map(curve).collect();
        (!curves.is_empty()).then(|| Panel { title: title.into(), curves })
    };
    let panels = [
        panel("Alone: share", |row| row.round_trips.as_ref()),
        panel("Beside a bulk flow, each from when it fell due: share", |row| Some(&row.both)),
    ];
    let panels: Vec<_> = panels.into_iter().flatten().collect();
    (!panels.is_empty()).then(|| Picture {
        summary: "The share of round trips that took no longer than a time.".into(),
        x_title: "round trip, us (logarithmic)".into(),
        has_logarithmic_x: true,
        change: None,
        panels,
    })
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
        ..TradeoffPoint::default()
    })
}

fn report_table(rows: &[Row], columns: &Columns) -> report::Table {
    let least = |of: fn(&Row) -> f64| rows.iter().map(of).fold(f64::INFINITY, f64::min);
    let p50 = |row: &Row| row.both.latency_us.as_ref().map_or(f64::NAN, |latency| latency.p50);
    let interrupts = |row: &Row| row.both.interrupts_per_s.unwrap_or(f64::NAN);
    let (least_p50, least_interrupts) = (least(p50), least(interrupts));
    let row = |row: &Row| {
        let emphasis = |column: usize, text: String| match column {
            it if it == columns.both_p50 => graded(text, p50(row) / least_p50),
            it if it == columns.both_interrupts => graded(text, interrupts(row) / least_interrupts),
            _ => Cell::plain(text),
        };
        let cells = (columns.cells)(row).into_iter().enumerate();
        cells.map(|(column, text)| emphasis(column, text)).collect()
    };
    report::Table {
        headers: columns.headers.iter().map(|(name, _)| name.replace('\n', " ")).collect(),
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
