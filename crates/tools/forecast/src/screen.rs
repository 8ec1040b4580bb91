//! A prediction in a terminal.

use base::quantiles::Quantiles;
use predict::{GridPoint, Prediction, Proposal, SettingOutcome};
use report::terminal::{Table, Width};
use report::{Screen, ScreenPart};

use crate::trials;

/// Groups that are listed of each setting.
const GROUPS: usize = 8;
/// Proposals that are listed.
const PROPOSALS: usize = 5;

/// All that a prediction says; `device` is where its settings would be, if that is known.
pub fn screen(prediction: &Prediction, device: Option<&str>, width: Width) -> Screen {
    let mut parts =
        vec![ScreenPart::Text(prediction.subject()), ScreenPart::Table(settings(prediction))];
    parts.push(ScreenPart::Table(groups(prediction, GROUPS)));
    parts.extend(of_grid(prediction, device));
    parts.extend(of_proposals(prediction, PROPOSALS));
    parts.push(ScreenPart::Text(prediction.limits().join("\n")));
    Screen::new(parts, width)
}

/// What nothing of the grid beats, and how to have it on a device.
pub(crate) fn of_grid(prediction: &Prediction, device: Option<&str>) -> Vec<ScreenPart> {
    let Some(grid) = &prediction.grid else { return Vec::new() };
    let title = format!(
        "Of {} settings, tried on {} arrivals, nothing beats these in both interrupts and the 99th \
         percentile:",
        grid.points.len(),
        grid.packets
    );
    let front = front(grid.points.iter().filter(|point| point.on_front));
    let mut parts = vec![ScreenPart::Text(title), ScreenPart::Table(front)];
    parts.extend(trials::lines(device, grid).map(ScreenPart::Text));
    parts
}

/// Rules for marks, and how to have the best of them on a NIC without marks.
pub(crate) fn of_proposals(prediction: &Prediction, most: usize) -> Vec<ScreenPart> {
    let Some(first) = prediction.proposals.first() else { return Vec::new() };
    let title = format!(
        "Rules that would mark what waits, under {}, by what an interrupt more saves ({} arrivals):",
        first.setting, prediction.sampled
    );
    let listed = &prediction.proposals[..prediction.proposals.len().min(most)];
    let mut parts = vec![ScreenPart::Text(title), ScreenPart::Table(proposals(listed))];
    parts.extend(lane(listed).map(ScreenPart::Text));
    parts
}

fn us(value: f64) -> String {
    format!("{value:.1}")
}

/// p50, p99 and the largest.
fn three(holds: Option<&Quantiles>) -> [String; 3] {
    let of = |value: fn(&Quantiles) -> f64| holds.map_or("-".into(), |holds| us(value(holds)));
    [of(|it| it.p50), of(|it| it.p99), of(|it| it.max)]
}

/// A row for each setting, and one for what the capture itself recorded.
fn rows(prediction: &Prediction) -> impl Iterator<Item = &SettingOutcome> {
    prediction.recorded.iter().chain(&prediction.settings)
}

pub(crate) fn settings(prediction: &Prediction) -> Table {
    let mut table = Table::new([
        ("setting", 0),
        ("interrupts/s", 0),
        ("packets each", 1),
        ("hold p50 us", 0),
        ("p99", 0),
        ("max", 1),
        ("host busy", 1),
        ("taken p99 us", 2),
        ("missed", 2),
    ]);
    for outcome in rows(prediction) {
        let [p50, p99, max] = three(outcome.hold_us.as_ref());
        let busy = outcome.host_busy.map_or("-".into(), |busy| format!("{:.1} %", 100.0 * busy));
        table.add_row([
            outcome.setting.clone(),
            format!("{:.0}", outcome.interrupts_per_s),
            format!("{:.2}", outcome.packets_per_interrupt),
            p50,
            p99,
            max,
            busy,
            outcome.taken_us.map_or("-".into(), |taken| us(taken.p99)),
            outcome.missed.to_string(),
        ]);
    }
    table
}

/// The holds of each group under each setting: p50 and p99.
pub(crate) fn groups(prediction: &Prediction, most: usize) -> Table {
    let names: Vec<&str> = prediction.settings.first().map_or(Vec::new(), |first| {
        first.groups.iter().take(most).map(|group| group.name.as_str()).collect()
    });
    let all: Vec<&SettingOutcome> = rows(prediction).collect();
    let columns = all
        .iter()
        .enumerate()
        .map(|(at, outcome)| (outcome.setting.as_str(), u8::try_from(at / 3).unwrap_or(u8::MAX)));
    let columns = [("hold p50 / p99 us", 0), ("packets", 1)].into_iter().chain(columns);
    let mut table = Table::new(columns);
    for name in names {
        let of = |outcome: &SettingOutcome| {
            outcome.groups.iter().find(|group| group.name == name).map(|group| group.hold_us)
        };
        let packets = prediction.settings.first().and_then(of).map_or(0, |holds| holds.count);
        let cells = all.iter().map(|outcome| {
            of(outcome).map_or("-".into(), |holds| format!("{:.1} / {:.1}", holds.p50, holds.p99))
        });
        table.add_row([name.to_owned(), packets.to_string()].into_iter().chain(cells));
    }
    table
}

fn front<'a>(points: impl Iterator<Item = &'a GridPoint>) -> Table {
    let mut table =
        Table::new([("setting", 0), ("interrupts/s", 0), ("hold p50 us", 1), ("p99", 0)]);
    for point in points {
        let interrupts = format!("{:.0}", point.interrupts_per_s);
        table.add_row([
            point.setting.clone(),
            interrupts,
            us(point.hold_p50_us),
            us(point.hold_p99_us),
        ]);
    }
    table
}

fn proposals(proposals: &[Proposal]) -> Table {
    let mut table = Table::new([
        ("rule", 0),
        ("marks", 1),
        ("interrupts/s more", 0),
        ("saved us each", 0),
        ("hold p50 us", 1),
        ("as a lane", 2),
    ]);
    for proposal in proposals {
        let saved = proposal.saved_us_per_interrupt.map_or("no more needed".into(), us);
        let lane = proposal.lane_more_interrupts_per_s;
        table.add_row([
            proposal.rule.clone(),
            format!("{:.1} %", 100.0 * proposal.marked),
            format!("{:.0}", proposal.more_interrupts_per_s),
            saved,
            us(proposal.hold_p50_us),
            lane.map_or("-".into(), |more| format!("{more:+.0}/s")),
        ]);
    }
    table
}

/// How to have the best of them on a NIC without marks.
fn lane(proposals: &[Proposal]) -> Option<String> {
    let best = proposals.iter().find_map(|proposal| proposal.lane.as_deref())?;
    Some(format!("On a NIC without marks: earmark lane DEV '{best}'"))
}
