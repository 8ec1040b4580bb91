//! Rules of udev that run `ethtool` (`udev(7)`).

use super::command;
use super::files::Files;
use super::traits::{Matches, Settings, Traits, any, is_like};

const DIRECTORIES: [&str; 5] = [
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
];

pub(super) fn read(files: &mut Files<'_>, device: &Traits) -> Vec<(String, Matches, Settings)> {
    let mut found = Vec::new();
    for path in files.by_name(&DIRECTORIES, ".rules") {
        let (certain, perhaps): (Vec<_>, Vec<_>) = rules(&files.text(&path), device)
            .into_iter()
            .partition(|(matches, _)| *matches == Matches::Yes);
        for (matches, settings) in [certain, perhaps].map(command::together) {
            found.push((path.clone(), matches, settings));
        }
    }
    found
}

/// What each rule sets.
pub(super) fn rules(text: &str, device: &Traits) -> Vec<(Matches, Settings)> {
    command::lines(text).iter().flat_map(|line| rule(line, device)).collect()
}

/// A rule: keys, each with an operator and a value in quotes.
fn rule(line: &str, device: &Traits) -> Vec<(Matches, Settings)> {
    if !line.contains("ethtool") {
        return Vec::new();
    }
    let (mut is_for, mut set) = (Matches::Yes, Vec::new());
    let parts: Vec<&str> = line.split('"').collect();
    for pair in parts.chunks_exact(2) {
        let key = pair[0].trim_matches([',', ' ', '\t']);
        if let Some(key) = key.strip_suffix("==") {
            is_for = is_for.min(condition(key.trim_end(), pair[1], device));
        } else if let Some(key) = key.strip_suffix("!=") {
            is_for = is_for.min(!condition(key.trim_end(), pair[1], device));
        } else if ["RUN", "PROGRAM", "IMPORT{program}"].iter().any(|it| key.starts_with(it)) {
            // A variable there is of the device that the rule is for.
            set.extend(command::in_line(pair[1], device, Matches::Yes));
        }
    }
    let both = |(matches, settings): (Matches, Settings)| (is_for.min(matches), settings);
    set.into_iter().map(both).collect()
}

/// Whether the value of a key, alternatives with `|` between them, is that of the device.
fn condition(key: &str, values: &str, device: &Traits) -> Matches {
    let one = |value: &str| match key {
        "SUBSYSTEM" => is_like(value, Some("net")),
        "ACTION" => any(["add", "change", "move"].map(|action| is_like(value, Some(action)))),
        // A name that udev may have replaced since.
        "KERNEL" => match is_like(value, Some(&device.name)) {
            Matches::No if value.starts_with("eth") && !device.name.starts_with("eth") => {
                Matches::Perhaps
            }
            matches => matches,
        },
        "NAME" | "ENV{INTERFACE}" => is_like(value, Some(&device.name)),
        "ATTR{address}" => device.has_address(value),
        "DRIVERS" | "ENV{ID_NET_DRIVER}" => is_like(value, device.driver.as_deref()),
        _ => Matches::Perhaps,
    };
    any(values.split('|').map(one))
}
