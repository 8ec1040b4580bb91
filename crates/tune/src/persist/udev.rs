//! A udev rule (`udev(7)`): attributes of the device that udev writes, and a run of `ethtool`.

use super::file::{File, MARK, Subject};
use super::words::{ethtool, sysfs};
use crate::setting::{Setting, State};

/// Its path.
pub(super) fn path(device: &str) -> String {
    format!("/etc/udev/rules.d/90-earmark-{device}.rules")
}

/// The file.
pub(super) fn file(subject: &Subject, settings: &State) -> File {
    let text = format!("{MARK}\n{}", rules(&subject.name, settings, "/usr/sbin/ethtool"));
    File { path: path(&subject.name), text, is_program: false }
}

/// The rules for a device of that name.
pub(super) fn rules(name: &str, settings: &State, program: &str) -> String {
    let mut does: String =
        sysfs(settings).map(|(file, value)| format!(", ATTR{{{file}}}=\"{value}\"")).collect();
    if let Some(words) = ethtool(settings) {
        does += &format!(", RUN+=\"{program} -C {name} {words}\"");
    }
    // The name that it will have; or, where nothing names devices, the kernel's.
    format!(
        "ACTION==\"add\", SUBSYSTEM==\"net\", NAME==\"{name}\"{does}\n\
         ACTION==\"add\", SUBSYSTEM==\"net\", NAME==\"\", KERNEL==\"{name}\"{does}\n"
    )
}

/// Names and values in a rule of ours.
pub(super) fn pairs(line: &str) -> Vec<(Setting, &str)> {
    let mut pairs = Vec::new();
    for part in line.split(", ") {
        if let Some((name, value)) =
            part.strip_prefix("ATTR{").and_then(|rest| rest.split_once("}=\""))
        {
            pairs.push((name.replace('_', "-"), value.trim_end_matches('"')));
        } else if let Some((_, command)) = part.split_once("ethtool -C ") {
            let words: Vec<&str> =
                command.trim_end_matches('"').split_whitespace().skip(1).collect();
            pairs.extend(words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1])));
        }
    }
    let known = pairs.into_iter().filter_map(|(name, value)| Some((name.parse().ok()?, value)));
    known.collect()
}
