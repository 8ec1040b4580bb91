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

/// What each rule sets. Rules that the device jumps over with `GOTO` are not for it.
pub(super) fn rules(text: &str, device: &Traits) -> Vec<(Matches, Settings)> {
    let mut found = Vec::new();
    // Where it jumps to, and whether it does not.
    let mut jump: Option<(String, Matches)> = None;
    for line in command::lines(text) {
        let rule = Rule::read(&line, device);
        if jump.as_ref().is_some_and(|(label, _)| rule.label == Some(label)) {
            jump = None;
        }
        let is_reached = jump.as_ref().map_or(Matches::Yes, |(_, stays)| *stays);
        let is_for = rule.is_for.min(is_reached);
        for (matches, settings) in rule.set {
            found.push((is_for.min(matches), settings));
        }
        if let (Some(label), Matches::Perhaps | Matches::Yes, None) = (rule.goto, is_for, &jump) {
            jump = Some((label.to_owned(), !is_for));
        }
    }
    found
}

struct Rule<'a> {
    is_for: Matches,
    set: Vec<(Matches, Settings)>,
    label: Option<&'a str>,
    goto: Option<&'a str>,
}

impl<'a> Rule<'a> {
    fn read(line: &'a str, device: &Traits) -> Self {
        let mut rule = Self { is_for: Matches::Yes, set: Vec::new(), label: None, goto: None };
        if line.trim_start().starts_with('#') {
            return rule;
        }
        let parts: Vec<&str> = line.split('"').collect();
        for pair in parts.chunks_exact(2) {
            let (key, value) = (pair[0].trim_matches([',', ' ', '\t']), pair[1]);
            if let Some(key) = key.strip_suffix("==") {
                rule.is_for = rule.is_for.min(condition(key.trim_end(), value, device));
            } else if let Some(key) = key.strip_suffix("!=") {
                rule.is_for = rule.is_for.min(!condition(key.trim_end(), value, device));
            } else if key.starts_with("LABEL") {
                rule.label = Some(value);
            } else if key.starts_with("GOTO") {
                rule.goto = Some(value);
            } else if ["RUN", "PROGRAM", "IMPORT{program}"].iter().any(|it| key.starts_with(it)) {
                // A variable there is of the device that the rule is for.
                rule.set.extend(command::in_line(value, device, Matches::Yes));
            }
        }
        rule
    }
}

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
