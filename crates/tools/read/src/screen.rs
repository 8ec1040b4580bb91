//! An answer for people: first what was read, then what follows.

use report::terminal::{Lines, Table, Width};
use report::{Screen, ScreenPart};
use show::{Report, screen as of_device};

use crate::answer::{FileSetting, Ratio, ReadResult, Taken};
use crate::kind::InputKind;
use crate::round_trips::RoundTrips;

/// Entries of a list that are printed; the rest is counted.
const MOST: usize = 24;

/// All that an answer says.
pub fn screen(answer: &ReadResult, width: Width) -> Screen {
    let mut parts = vec![ScreenPart::Lines(taken(answer, width))];
    match &answer.devices[..] {
        [only] if says_something(only) => parts.push(ScreenPart::Lines(of_device(only, width))),
        [] | [_] => {}
        several => parts.push(ScreenPart::Table(table(several))),
    }
    let mut lines = Lines::new(width);
    lines.group("in files", few(answer.settings.iter().map(setting)));
    lines.group("between", answer.between.iter().map(between));
    lines.group("also", few(answer.notes.iter().cloned()));
    lines.group("round trips", few(answer.round_trips.iter().map(series)));
    if let Some(verdict) = &answer.verdict {
        lines.group("they show", few(verdict.says.iter().cloned()));
        lines.group("cannot tell", verdict.cannot_tell.iter().cloned());
        lines.group("what can", [verdict.next.clone()]);
    }
    if !lines.is_empty() {
        parts.push(ScreenPart::Lines(lines));
    }
    if let Some(first) = answer.devices.first().filter(|_| answer.devices.len() > 1) {
        parts.push(ScreenPart::Text(format!("more about one of them: --device {}", first.name)));
    }
    Screen::new(parts, width)
}

/// Whether there is more of a device than its name.
fn says_something(device: &Report) -> bool {
    let is_known = device.coalescing.is_some()
        || device.driver.is_some()
        || device.features.is_some()
        || device.rings.is_some()
        || device.channels.is_some()
        || device.link.is_some()
        || device.eee.is_some()
        || device.timestamps.is_some();
    is_known
        || device.files.limits.busy_poll.is_some()
        || !device.set_by.is_empty()
        || !device.interrupts.is_empty()
        || !device.delays.is_empty()
}

fn few(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.collect();
    let more = texts.len().saturating_sub(MOST);
    texts.truncate(MOST);
    texts.extend((more > 0).then(|| format!("and {more} more (--json has them)")));
    texts
}

fn taken(answer: &ReadResult, width: Width) -> Lines {
    let mut lines = Lines::new(width);
    // A report has hundreds of files: those of one kind are one entry.
    let mut entries: Vec<String> = Vec::new();
    let of_reports = answer.taken.len() > MOST;
    if of_reports {
        let mut kinds: Vec<InputKind> = answer.taken.iter().map(|it| it.kind).collect();
        kinds.sort();
        kinds.dedup();
        for kind in kinds {
            let its = answer.taken.iter().filter(|it| it.kind == kind);
            entries.push(format!("{}, {} times", kind.words(), its.count()));
        }
    } else {
        entries.extend(answer.taken.iter().map(one));
    }
    if entries.is_empty() {
        entries.push("nothing".into());
    }
    lines.group("read as", entries);
    lines
}

fn one(taken: &Taken) -> String {
    let Taken { input, line, lines, kind, device, not_understood, remark } = taken;
    let device = device.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
    let place = match (input.as_str(), *line) {
        ("-", line) => format!("line {line}"),
        (input, 1) => input.to_owned(),
        (input, line) => format!("{input}:{line}"),
    };
    let mut text = format!("{place}: {}{device}", kind.words());
    if *not_understood > 0 && *kind != InputKind::Unknown {
        text += &format!(", {not_understood} of {lines} lines not understood");
    }
    if let Some(remark) = remark {
        text += &format!("; {remark}");
    }
    text
}

/// Several devices, a row each.
fn table(devices: &[Report]) -> Table {
    let mut table = Table::new([
        ("device", 0),
        ("driver", 1),
        ("Mbit/s", 3),
        ("rx-usecs", 1),
        ("rx-frames", 4),
        ("adaptive-rx", 2),
        ("rx ring", 5),
        ("vectors", 6),
        ("all on CPU", 3),
        ("drops", 4),
        ("up to us", 0),
        ("by", 1),
    ]);
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    for device in devices {
        let get = |name: &str| {
            let settings = device.coalescing.as_ref()?;
            settings.get(name.parse().ok()?)
        };
        let longest = device.delays.first();
        let up_to = longest.map(|delay| match delay.up_to_us {
            Some(us) => format!("{us:.0}"),
            None if delay.endless => "no limit".into(),
            None => "unknown".into(),
        });
        let vectors = device.interrupts.len();
        table.add_row([
            device.name.clone(),
            device.driver_name().to_owned(),
            text(device.speed_mbps().map(|it| it.to_string())),
            text(get("rx-usecs").map(|it| it.to_string())),
            text(get("rx-frames").map(|it| it.to_string())),
            text(get("adaptive-rx").map(|it| if it == 0 { "off" } else { "on" }.into())),
            text(device.rings.and_then(|rings| rings.rx).map(|it| it.to_string())),
            text((vectors > 0).then(|| vectors.to_string())),
            text(device.crowded_cpu.map(|cpu| cpu.to_string())),
            text(drops(device).map(|it| it.to_string())),
            text(up_to),
            text(longest.map(|delay| delay.cause.to_owned())),
        ]);
    }
    table
}

/// Packets that the device dropped as they came, if files say.
fn drops(device: &Report) -> Option<u64> {
    let names = ["rx_dropped", "rx_missed_errors", "rx_fifo_errors", "rx_over_errors"];
    let counts = names.iter().filter_map(|name| device.files.statistics.get(*name));
    counts.copied().reduce(u64::saturating_add)
}

fn setting(setting: &FileSetting) -> String {
    let FileSetting { device, by, path, name, value, means, .. } = setting;
    let mut text = format!("{by} ({path}) for {device}: {name} {value}");
    if let Some(means) = means {
        text += &format!(": {means}");
    }
    if let Some(later) = &setting.overridden_by {
        text += &format!("; set again by {later}");
    }
    if let Some(other) = &setting.contested_by {
        text += &format!("; {other} sets it as well, in no order");
    }
    if !setting.is_certain {
        text += "; whether it is for this device is not known here";
    }
    text
}

fn between(ratio: &Ratio) -> String {
    let Ratio { device, rx_packets, interrupts, rx_packets_per_interrupt, rates } = ratio;
    let mut text = format!("{device}: {interrupts} interrupts");
    if let Some(each) = rx_packets_per_interrupt {
        text += &format!(" and {rx_packets} packets received, {each:.1} for each interrupt");
    }
    match rates {
        Some(rates) => {
            let per_s = rates.interrupts_per_s.unwrap_or(0.0);
            text += &format!(
                ": {per_s:.0} interrupts and {:.0} packets a second",
                rates.rx_packets_per_s
            );
            let busy = rates.queues.iter().filter(|it| it.packets_per_s > 0.0).take(4);
            for queue in busy {
                let each = queue.packets_per_interrupt;
                let each = each.map(|it| format!(", {it:.1} each")).unwrap_or_default();
                text += &format!("; queue {}: {:.0}/s{each}", queue.id, queue.packets_per_s);
            }
        }
        None => text += "; --seconds N, the time between the readings, makes rates of them",
    }
    text
}

fn series(series: &RoundTrips) -> String {
    let us = |value: Option<f64>, words: &str| value.map(|us| format!("{us:.0} us {words}"));
    let mut parts = Vec::new();
    if series.count > 0 {
        parts.push(format!("{} of them", series.count));
    }
    parts.extend(series.per_s.map(|it| format!("{it:.0}/s")));
    parts.extend(us(series.min_us, "at least"));
    parts.extend(us(series.p50_us, "in the median"));
    parts.extend(us(series.mean_us, "in the mean"));
    parts.extend(us(series.p99_us, "at the 99th percentile"));
    parts.extend(us(series.max_us, "at most"));
    let half = if series.is_half { ", half a round trip each" } else { "" };
    format!("{} ({}): {}{half}", series.source, series.at, parts.join(", "))
}
