//! Which `.link` file of systemd counts for a device (`systemd.link(5)`), below any root.
//!
//! Files of all directories are read in the order of their names, and the first one that matches a
//! device is the only one that counts. A file in `/etc` hides one of the same name in `/run`, that
//! one the same in `/usr`. What is in `NAME.link.d/*.conf`, in any of the directories, is read
//! after `NAME.link` and wins over it. `udev` decides in the end; a condition that cannot be
//! evaluated here is reported as open.

use std::collections::BTreeMap;

use super::command;
use super::files::{FileTree, Files, Unread, by_name, text};
use super::ini::{assignment, section};
use super::traits::{Matches, Settings, Traits, any, is_like};
use crate::ethtool::Parameter;

/// Where such files are, the most important first.
const DIRECTORIES: [&str; 4] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
];

/// A `.link` file, with what is dropped in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFile {
    /// Its path below the root, beginning with a slash.
    pub path: String,
    /// The name of the file.
    pub name: String,
    /// Whether it matches the device.
    pub matches: Matches,
    /// The whole text of the file.
    pub text: String,
    /// The lines of its `[Link]` section, and of those that are dropped in.
    pub lines: Vec<String>,
}

/// A line dropped in: the file, and the lines of its `[Link]` section.
pub type DropIn = (String, Vec<String>);

/// The files that may count for a device, in the order in which they are read. One that counted
/// when udev saw the device matches.
///
/// # Errors
/// If one cannot be read: it might be the one that counts.
pub fn foreign(tree: &dyn FileTree, device: &Traits) -> Result<Vec<LinkFile>, Unread> {
    let by_udev = by_udev(tree, device)?;
    let mut files = Vec::new();
    for (name, path) in by_name(tree, &DIRECTORIES, "", ".link")? {
        let text = text(tree, &path)?.unwrap_or_default();
        let is_known = by_udev.as_ref() == Some(&path);
        let matches = if is_known { Matches::Yes } else { matches(&text, device) };
        if matches == Matches::No {
            continue;
        }
        let mut lines = section(&text, "[Link]");
        lines.extend(drop_ins(tree, &name)?.into_iter().flat_map(|(_, lines)| lines));
        files.push(LinkFile { path, name, matches, text, lines });
    }
    Ok(files)
}

fn by_udev(tree: &dyn FileTree, device: &Traits) -> Result<Option<String>, Unread> {
    let Some(number) = device.number else { return Ok(None) };
    let known = text(tree, &format!("/run/udev/data/n{number}"))?.unwrap_or_default();
    let path = known.lines().find_map(|line| line.strip_prefix("E:ID_NET_LINK_FILE="));
    // The same directory by its older name.
    Ok(path.map(|path| match path.strip_prefix("/lib/") {
        Some(rest) => format!("/usr/lib/{rest}"),
        None => path.to_owned(),
    }))
}

/// What is dropped into a `.link` file of that name.
pub fn drop_ins(tree: &dyn FileTree, name: &str) -> Result<Vec<DropIn>, Unread> {
    let files = by_name(tree, &DIRECTORIES, &format!("/{name}.d"), ".conf")?.into_values();
    let lines = |path: &str| Ok(section(&text(tree, path)?.unwrap_or_default(), "[Link]"));
    files.map(|path| Ok((path.clone(), lines(&path)?))).collect()
}

pub(super) fn read(files: &mut Files<'_>, device: &Traits) -> Vec<(String, Matches, Settings)> {
    let by_udev = by_udev(files.tree, device).unwrap_or_else(|unread| files.note(unread));
    let all = foreign(files.tree, device).unwrap_or_else(|unread| files.note(unread));
    let is_it = |file: &&LinkFile| by_udev.as_ref().is_none_or(|path| *path == file.path);
    let mut found = Vec::new();
    for file in all.iter().filter(is_it) {
        // One before it may count instead.
        let matches = if found.is_empty() { file.matches } else { Matches::Perhaps };
        found.push((file.path.clone(), matches, settings(&file.lines)));
        if file.matches == Matches::Yes {
            break;
        }
    }
    found
}

pub(super) fn settings(lines: &[String]) -> Settings {
    let pairs = lines.iter().filter_map(|line| assignment(line));
    pairs.filter_map(|(key, value)| setting(key, value)).collect()
}

fn setting(key: &str, value: &str) -> Option<(String, String)> {
    let parameter = Parameter::all().find(|parameter| link_key(*parameter) == Some(key))?;
    let value = match value {
        _ if key.ends_with("IntervalSec") => value.trim_end_matches('s').to_owned(),
        _ if key.ends_with("Sec") => micros(value)?.to_string(),
        "yes" | "true" | "on" => "on".into(),
        "no" | "false" | "off" => "off".into(),
        value => value.to_owned(),
    };
    command::setting(parameter.name(), &value)
}

/// Microseconds; without a unit they are seconds.
fn micros(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "" | "s" | "sec" => 1_000_000,
        _ => return None,
    };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(unit)
}

/// The key of a parameter in the `[Link]` section, if there is one.
pub fn link_key(parameter: Parameter) -> Option<&'static str> {
    Some(match parameter {
        Parameter::AdaptiveRx => "UseAdaptiveRxCoalesce",
        Parameter::AdaptiveTx => "UseAdaptiveTxCoalesce",
        Parameter::RxUsecs => "RxCoalesceSec",
        Parameter::RxFrames => "RxMaxCoalescedFrames",
        Parameter::RxUsecsIrq => "RxIrqCoalesceSec",
        Parameter::RxFramesIrq => "RxMaxIrqCoalescedFrames",
        Parameter::TxUsecs => "TxCoalesceSec",
        Parameter::TxFrames => "TxMaxCoalescedFrames",
        Parameter::TxUsecsIrq => "TxIrqCoalesceSec",
        Parameter::TxFramesIrq => "TxMaxIrqCoalescedFrames",
        Parameter::PktRateLow => "CoalescePacketRateLow",
        Parameter::RxUsecsLow => "RxLowCoalesceSec",
        Parameter::RxFramesLow => "RxMaxLowCoalescedFrames",
        Parameter::TxUsecsLow => "TxLowCoalesceSec",
        Parameter::TxFramesLow => "TxMaxLowCoalescedFrames",
        Parameter::PktRateHigh => "CoalescePacketRateHigh",
        Parameter::RxUsecsHigh => "RxHighCoalesceSec",
        Parameter::RxFramesHigh => "RxMaxHighCoalescedFrames",
        Parameter::TxUsecsHigh => "TxHighCoalesceSec",
        Parameter::TxFramesHigh => "TxMaxHighCoalescedFrames",
        Parameter::SampleInterval => "CoalescePacketRateSampleIntervalSec",
        Parameter::StatsBlockUsecs => "StatisticsBlockCoalesceSec",
        _ => return None,
    })
}

pub(super) fn matches(text: &str, device: &Traits) -> Matches {
    let mut all = BTreeMap::<String, String>::new();
    for line in section(text, "[Match]") {
        let Some((key, value)) = line.split_once('=') else { continue };
        let values = all.entry(key.trim().to_owned()).or_default();
        // Lines of one key are one list, which an empty one ends.
        if value.trim().is_empty() {
            values.clear();
        } else {
            *values = format!("{values} {}", value.trim());
        }
    }
    all.retain(|_, values| !values.is_empty());
    if all.is_empty() {
        return Matches::No;
    }
    let one = |(key, values): (&String, &String)| match key.as_str() {
        "MACAddress" | "PermanentMACAddress" => {
            any(values.split_whitespace().map(|value| device.has_address(value)))
        }
        "OriginalName" => listed(values, Some(&device.name)),
        "Driver" => listed(values, device.driver.as_deref()),
        _ => Matches::Perhaps,
    };
    all.iter().map(one).min().unwrap_or(Matches::No)
}

fn listed(patterns: &str, text: Option<&str>) -> Matches {
    let has = |list: &str| any(list.split_whitespace().map(|pattern| is_like(pattern, text)));
    match patterns.trim().strip_prefix('!') {
        Some(patterns) => !has(patterns),
        None => has(patterns),
    }
}
