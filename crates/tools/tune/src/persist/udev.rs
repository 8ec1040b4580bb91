//! A udev rule (`udev(7)`): attributes of the device that udev writes, and a run of `ethtool`.

use super::file::{File, MARK, Subject};
use super::words::{ethtool_runs, pairs_of_ethtool, sysfs};
use crate::setting::{Setting, State, ValueKind};

pub(super) fn path(device: &str) -> String {
    format!("/etc/udev/rules.d/90-earmark-{device}.rules")
}

pub(super) fn file(subject: &Subject, settings: &State) -> File {
    let text = format!("{MARK}\n{}", rules(&subject.name, settings, "/usr/sbin/ethtool"));
    File { path: path(&subject.name), text, is_program: false }
}

pub(super) fn rules(name: &str, settings: &State, program: &str) -> String {
    let mut does: String =
        sysfs(settings).map(|(file, value)| format!(", ATTR{{{file}}}=\"{value}\"")).collect();
    for run in ethtool_runs(name, settings) {
        does += &format!(", RUN+=\"{program} {run}\"");
    }
    // The name that it will have; or, where nothing names devices, the kernel's.
    format!(
        "ACTION==\"add\", SUBSYSTEM==\"net\", NAME==\"{name}\"{does}\n\
         ACTION==\"add\", SUBSYSTEM==\"net\", NAME==\"\", KERNEL==\"{name}\"{does}\n"
    )
}

pub(super) fn pairs(line: &str) -> Vec<(Setting, &str)> {
    let mut pairs = Vec::new();
    for part in line.split(", ") {
        if let Some((name, value)) =
            part.strip_prefix("ATTR{").and_then(|rest| rest.split_once("}=\""))
        {
            let Ok(setting) = name.replace('_', "-").parse::<Setting>() else { continue };
            let value = match (setting.kind(), value.trim_end_matches('"')) {
                (ValueKind::Switch, "0") => "off",
                (ValueKind::Switch, "1") => "on",
                (_, value) => value,
            };
            pairs.push((setting, value));
        } else if let Some((_, words)) = part.split_once("ethtool ") {
            pairs.extend(pairs_of_ethtool(words.trim_end_matches('"')));
        }
    }
    pairs
}
