//! A prediction as a page.

use predict::{Prediction, SettingOutcome};
use report::{Cell, Report, ScreenPart, TradeoffChart, TradeoffPoint};

use crate::screen::{groups, of_grid, of_proposals, settings};

/// What points are up by.
const LATENCY: &str = "hold, 99th percentile";

/// Holds against interrupts, or against the load of the host.
pub fn tradeoff(prediction: &Prediction) -> TradeoffChart {
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

/// The whole page of a capture of that name.
pub fn report(name: &str, prediction: &Prediction) -> Report {
    let mut table = settings(prediction).of_page();
    for missed in table.rows.iter_mut().filter_map(|row| row.last_mut()) {
        if missed.text != "0" {
            *missed = Cell::bad(missed.text.clone());
        }
    }
    let who = vec![ScreenPart::Table(groups(prediction, usize::MAX))];
    let parts = [
        chapter("Who waits", who),
        chapter("The front of the grid", of_grid(prediction, None)),
        chapter("Rules for marks", of_proposals(prediction, usize::MAX)),
    ];
    Report {
        title: format!("What settings would do to {name}"),
        subtitle: prediction.subject(),
        summary: prediction.limits().join("\n"),
        table,
        tradeoff: tradeoff(prediction),
        is_of_holds: true,
        parts: parts.into_iter().flatten().collect(),
        ..Report::default()
    }
}

/// Parts of a screen as a chapter: its table, and all text above it; none if there is no table.
fn chapter(title: &str, parts: Vec<ScreenPart>) -> Option<Report> {
    let mut chapter = Report { title: title.into(), ..Report::default() };
    for part in parts {
        match part {
            ScreenPart::Text(text) => chapter.summary += &format!("{text}\n"),
            ScreenPart::Table(table) => chapter.table = table.of_page(),
            ScreenPart::Lines(lines) => chapter.summary += &lines.lines().join("\n"),
        }
    }
    (!chapter.table.rows.is_empty()).then_some(chapter)
}
