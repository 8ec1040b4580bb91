//! What `ethtool` prints, as text of old and new versions and as JSON.
//!
//! Formats: ethtool's `netlink/*.c` since 5.7, `ethtool.c` before. A parser takes the lines of a
//! part, puts what they say into the device, and counts the lines that say nothing that it knows.

mod coalesce;
mod features;
mod fields;
mod json;
mod timestamps;

use std::collections::BTreeMap;

use crate::kind::InputKind;
use crate::known::KnownDevice;
use crate::machine::keep;

pub(crate) use json::is_of_ethtool;

/// No driver has more counters.
const MOST_COUNTERS: usize = 65_536;

/// Reads a part; how many of its lines are not understood.
pub(crate) fn read(kind: InputKind, lines: &[String], known: &mut KnownDevice) -> usize {
    let refused = lines.iter().find_map(|line| refusal(line));
    if let Some(why) = refused {
        take_refusal(kind, why, known);
    }
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty() && refusal(line).is_none())
        .collect();
    if lines.is_empty() {
        return 0;
    }
    match kind {
        InputKind::Coalesce => coalesce::read(&lines, known),
        InputKind::Features => features::read(&lines, known),
        InputKind::Rings => fields::rings(&lines, known),
        InputKind::Channels => fields::channels(&lines, known),
        InputKind::Driver => fields::driver(&lines, known),
        InputKind::Pause => fields::pause(&lines, known),
        InputKind::Eee => fields::eee(&lines, known),
        InputKind::PrivateFlags => fields::private_flags(&lines, known),
        InputKind::Settings => fields::link(&lines, known),
        InputKind::Timestamps => timestamps::read(&lines, known),
        InputKind::Statistics => statistics(&lines, known),
        _ => lines.len(),
    }
}

/// Reads a value of JSON that `ethtool --json` printed; the devices in it and what is said of them.
pub(crate) use json::read as read_json;

/// Why the kernel or the driver did not answer, if a line says so.
fn refusal(line: &str) -> Option<&str> {
    let line = line.trim();
    let netlink = line.strip_prefix("netlink error: ");
    let old = || {
        let is_refusal = line.starts_with("Cannot get ") || line.starts_with("Cannot ");
        is_refusal.then(|| line.split_once(": ").map(|(_, why)| why)).flatten()
    };
    let none = || {
        ["no stats available", "No data available", "No private flags defined"]
            .into_iter()
            .find(|words| line.starts_with(words))
            .map(|_| "Operation not supported")
    };
    netlink.or_else(old).or_else(none)
}

fn take_refusal(kind: InputKind, why: &str, known: &mut KnownDevice) {
    let Some(part) = part(kind) else { return };
    if why.contains("not supported") || why.contains("No data") {
        known.lacks.insert(part);
    } else if !why.starts_with("failed to retrieve") {
        known.note(format!("{part}: the kernel refused: {why}"));
    }
}

/// Whether a kind is the output of `ethtool`.
pub(crate) fn is_of(kind: InputKind) -> bool {
    (InputKind::Coalesce..=InputKind::Settings).contains(&kind)
}

/// The name of what a kind says of a device.
fn part(kind: InputKind) -> Option<&'static str> {
    Some(match kind {
        InputKind::Coalesce => show::part::COALESCING,
        InputKind::Features => "features",
        InputKind::Rings => "rings",
        InputKind::Channels => "channels",
        InputKind::Driver => "driver",
        InputKind::Timestamps => "timestamps",
        InputKind::Eee => "EEE",
        InputKind::Settings => "link",
        _ => return None,
    })
}

/// Name and value of a line, as most have it.
fn pair(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim(), value.trim()))
}

/// The first word of a value, if it is a number: what people write behind it is theirs.
fn number(value: &str) -> Option<u32> {
    crate::command::number(value.split_whitespace().next()?)
}

fn statistics(lines: &[&str], known: &mut KnownDevice) -> usize {
    let mut counters = BTreeMap::new();
    let mut unread = 0;
    for line in lines.iter().filter(|line| **line != "NIC statistics:") {
        // Some drivers have names with colons: `[0]: rx_ucast_packets: 5`.
        let pair = line.rsplit_once(':').and_then(|(name, value)| {
            let value = value.trim();
            let number = value.parse::<u64>().ok().or_else(|| value.parse::<i64>().ok().map(|_| 0));
            Some((name.trim().to_owned(), number?))
        });
        match pair {
            Some((name, value)) if counters.len() < MOST_COUNTERS => {
                counters.insert(name, value);
            }
            _ => unread += 1,
        }
    }
    if !counters.is_empty() {
        keep(&mut known.statistics, counters);
    }
    unread
}
