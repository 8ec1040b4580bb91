//! Pictures over the number of clients, and over time.

use bench::compare::Comparison;
use report::panels::{Curve as Line, Panel, Picture};
use workload::{Column, Series, Timing};

use crate::formula::Results;
use crate::seed::{Curve, CurveKind};

/// The picture of a run; none if the run has nothing to draw.
pub(crate) fn draw(curve: &Curve, results: &Results) -> Option<Picture> {
    let run = results.get(&curve.run)?.as_ref().ok()?;
    match curve.of {
        CurveKind::Clients => Some(over_clients(run)),
        CurveKind::Time => over_time(run),
    }
}

fn over_clients(run: &Comparison) -> Picture {
    let mut curves: Vec<Line> = Vec::new();
    for result in &run.results {
        let (Some(clients), Some(rate)) = (result.clients, result.transactions_per_s) else {
            continue;
        };
        let point = (f64::from(clients), rate);
        match curves.iter_mut().find(|curve| curve.name == result.setting) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Line { name: result.setting.clone(), points: vec![point] }),
        }
    }
    Picture {
        summary: "Answers a second over the number of clients.".into(),
        x_title: "clients".into(),
        has_logarithmic_x: false,
        change: None,
        panels: vec![Panel { title: "answers/s".into(), curves }],
    }
}

/// The panels of NTP: what each shows, and of which values.
const NTP: [(&str, &[(&str, Timing)]); 3] = [
    ("round trip, us", &[("round trip", Timing::RoundTrip)]),
    ("each way, us", &[("request", Timing::RequestHalf), ("response", Timing::ResponseHalf)]),
    ("offset, us", &[("offset", Timing::Offset)]),
];

fn over_time(run: &Comparison) -> Option<Picture> {
    let result = run.results.first()?;
    let series = result.series.first()?;
    let panel = |(title, lines): (&str, &[(&str, Timing)])| {
        let line = |(name, timing): &(&str, Timing)| {
            Some(Line { name: (*name).into(), points: points(series, *timing)? })
        };
        Panel { title: title.into(), curves: lines.iter().filter_map(line).collect() }
    };
    let end = result.seconds;
    Some(Picture {
        summary: "NTP's round trip, its halves and the offset over time.".into(),
        x_title: "seconds".into(),
        has_logarithmic_x: false,
        change: Some((end / 2.0, result.setting.replace(" then ", " becomes "))),
        panels: NTP.map(panel).into(),
    })
}

/// Seconds and microseconds.
fn points(series: &Series, timing: Timing) -> Option<Vec<(f64, f64)>> {
    let is_it = |column: &Column| *column == Column::Timing(timing);
    let column = series.columns.iter().position(is_it)?;
    let rows = series.rows.iter();
    Some(rows.map(|row| (row[0] as f64 / 1e9, row[column] as f64 / 1e3)).collect())
}
