//! Stanzas of ifupdown (`interfaces(5)`) and its scripts. Debian's package `ethtool` has a script,
//! `/etc/network/if-up.d/ethtool`, for options that begin with `hardware-irq-coalesce-`;
//! ifupdown-ng calls them `ethtool-coalesce-`.

use std::collections::VecDeque;

use super::command;
use super::files::Files;
use super::traits::{Matches, Settings, Traits};

const MAIN: &str = "/etc/network/interfaces";
const SCRIPTS: [&str; 2] = ["/etc/network/if-pre-up.d", "/etc/network/if-up.d"];

const MOST_FILES: usize = 256;

/// What begins something else than an option.
const STANZAS: [&str; 9] = [
    "iface",
    "mapping",
    "auto",
    "allow-auto",
    "allow-hotplug",
    "source",
    "source-directory",
    "rename",
    "template",
];

pub(super) fn read(files: &mut Files<'_>, device: &Traits) -> Vec<(String, Matches, Settings)> {
    let mut found = Vec::new();
    let mut paths = VecDeque::from([MAIN.to_owned()]);
    let mut seen = Vec::new();
    while let Some(path) = paths.pop_front().filter(|_| seen.len() < MOST_FILES) {
        if seen.contains(&path) {
            continue;
        }
        let stanzas = stanzas(&files.text(&path), device);
        for source in &stanzas.sources {
            paths.extend(sourced(files, source));
        }
        seen.push(path.clone());
        found.push((path, Matches::Yes, stanzas.settings));
    }
    for directory in SCRIPTS {
        for name in files.names(directory) {
            let path = format!("{directory}/{name}");
            let (matches, settings) = command::in_script(&files.text(&path), device);
            found.push((path, matches, settings));
        }
    }
    found
}

/// The files of a `source`, whose last part may be a pattern.
fn sourced(files: &mut Files<'_>, source: &str) -> Vec<String> {
    let absolute = if source.starts_with('/') { source } else { &format!("/etc/network/{source}") };
    let Some((directory, name)) = absolute.rsplit_once('/') else { return Vec::new() };
    let Ok(pattern) = glob::Pattern::new(name) else { return Vec::new() };
    let names = files.names(directory).into_iter().filter(|name| pattern.matches(name));
    names.map(|name| format!("{directory}/{name}")).collect()
}

#[derive(Debug, Default)]
pub(super) struct Stanzas {
    pub(super) settings: Settings,
    /// Patterns of further files.
    pub(super) sources: Vec<String>,
}

pub(super) fn stanzas(text: &str, device: &Traits) -> Stanzas {
    let mut found = Stanzas::default();
    let mut is_its = false;
    for line in command::lines(text) {
        let mut words = line.split_whitespace();
        let (Some(key), rest) = (words.next(), words) else { continue };
        if STANZAS.contains(&key) {
            let mut rest = rest;
            let name = rest.next().unwrap_or_default();
            is_its = key == "iface" && device.is_named(&[name]) == Matches::Yes;
            match key {
                "source" => found.sources.push(name.to_owned()),
                "source-directory" => found.sources.push(format!("{name}/*")),
                _ => {}
            }
        } else if is_its {
            let of_option = ["hardware-irq-coalesce-", "ethtool-coalesce-"]
                .iter()
                .find_map(|start| key.strip_prefix(start))
                .and_then(|name| command::setting(name, rest.clone().next()?));
            found.settings.extend(of_option);
            if ["pre-up", "up", "post-up"].contains(&key) {
                let commands = command::in_line(&line, device, Matches::Yes);
                found.settings.extend(command::together(commands).1);
            }
        }
    }
    found
}
