//! A prediction as a page.

use std::path::Path;

use anyhow::Result;
use predict::{Prediction, SettingOutcome};
use report::{Cell, Report, Table, TradeoffChart, TradeoffPoint};

use super::screen::rows;

/// What points are up by.
const LATENCY: &str = "hold, 99th percentile";

/// Holds against interrupts, or against the load of the host.
pub(super) fn tradeoff(prediction: &Prediction) -> TradeoffChart {
    let point = |outcome: &SettingOutcome| {
        Some(TradeoffPoint {
            name: outcome.setting.clone(),
            latency_us: outcome.hold_us.as_ref()?.p99,
            interrupts_per_s: outcome.interrupts_per_s,
            host_busy: outcome.host_busy,
            ..TradeoffPoint::default()
        })
    };
    TradeoffChart {
        title: "What waiting costs, and what it saves".into(),
        note: "Each point is a setting that the captured arrivals went through.".into(),
        latency: LATENCY.into(),
        points: prediction.settings.iter().filter_map(point).collect(),
        ..TradeoffChart::default()
    }
}

/// The whole page.
pub(super) fn report(capture: &Path, prediction: &Prediction) -> Result<Report> {
    let name = capture.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy());
    let mut parts = vec![groups(prediction)];
    if let Some(grid) = &prediction.grid {
        let headers = ["setting", "interrupts/s", "hold p50 us", "p99 us"].map(String::from);
        let row = |point: &predict::GridPoint| {
            let figures = [point.interrupts_per_s, point.hold_p50_us, point.hold_p99_us];
            let cells = figures.map(|figure| Cell::plain(format!("{figure:.1}")));
            [Cell::plain(&point.setting)].into_iter().chain(cells).collect()
        };
        let rows = grid.points.iter().filter(|point| point.on_front).map(row).collect();
        parts.push(Report {
            title: "The front of the grid".into(),
            summary: format!(
                "Of {} settings nothing beats these in both interrupts and the 99th percentile.",
                grid.points.len()
            ),
            table: Table { headers: headers.into(), rows },
            ..Report::default()
        });
    }
    if !prediction.proposals.is_empty() {
        parts.push(proposals(prediction));
    }
    Ok(Report {
        title: format!("What settings would do to {name}"),
        subtitle: prediction.subject(),
        summary: prediction.limits().join(" "),
        table: settings(prediction),
        tradeoff: tradeoff(prediction),
        parts,
        ..Report::default()
    })
}

fn settings(prediction: &Prediction) -> Table {
    let headers = [
        "setting",
        "interrupts/s",
        "packets each",
        "hold p50 us",
        "p99 us",
        "max us",
        "host busy",
        "missed",
    ];
    let row = |outcome: &SettingOutcome| {
        let holds = outcome.hold_us.unwrap_or_default();
        let cells = [
            outcome.setting.clone(),
            format!("{:.0}", outcome.interrupts_per_s),
            format!("{:.2}", outcome.packets_per_interrupt),
            format!("{:.1}", holds.p50),
            format!("{:.1}", holds.p99),
            format!("{:.1}", holds.max),
            outcome.host_busy.map_or("-".into(), |busy| format!("{:.1} %", 100.0 * busy)),
        ];
        let missed = match outcome.missed {
            0 => Cell::plain("0"),
            missed => Cell::bad(missed.to_string()),
        };
        cells.into_iter().map(Cell::plain).chain([missed]).collect()
    };
    Table { headers: headers.map(String::from).into(), rows: rows(prediction).map(row).collect() }
}

/// The holds of each group.
fn groups(prediction: &Prediction) -> Report {
    let names = prediction.settings.first().map_or(&[][..], |first| &first.groups);
    let mut headers = vec!["hold p50 / p99 us".to_owned(), "packets".to_owned()];
    headers.extend(rows(prediction).map(|outcome| outcome.setting.clone()));
    let row = |group: &predict::GroupHolds| {
        let mut cells =
            vec![Cell::plain(&group.name), Cell::plain(group.hold_us.count.to_string())];
        cells.extend(rows(prediction).map(|outcome| {
            let own = outcome.groups.iter().find(|own| own.name == group.name);
            Cell::plain(own.map_or("-".into(), |own| {
                format!("{:.1} / {:.1}", own.hold_us.p50, own.hold_us.p99)
            }))
        }));
        cells
    };
    Report {
        title: "Who waits".into(),
        table: Table { headers, rows: names.iter().map(row).collect() },
        ..Report::default()
    }
}

fn proposals(prediction: &Prediction) -> Report {
    let headers = ["rule", "marks", "interrupts/s more", "saved us for each", "lane"];
    let row = |proposal: &predict::Proposal| {
        let saved = proposal.saved_us_per_interrupt;
        let cells = [
            proposal.rule.clone(),
            format!("{:.1} %", 100.0 * proposal.marked),
            format!("{:.0}", proposal.more_interrupts_per_s),
            saved.map_or("no more needed".into(), |saved| format!("{saved:.1}")),
            proposal.lane.as_ref().map_or("-".into(), |it| format!("earmark lane DEV '{it}'")),
        ];
        cells.into_iter().map(Cell::plain).collect()
    };
    Report {
        title: "Rules for marks".into(),
        summary: "By what packets wait less for each interrupt more.".into(),
        table: Table {
            headers: headers.map(String::from).into(),
            rows: prediction.proposals.iter().map(row).collect(),
        },
        ..Report::default()
    }
}
