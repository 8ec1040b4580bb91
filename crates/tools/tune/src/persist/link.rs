//! A `.link` file (`systemd.link(5)`): what systemd itself sets when the device appears.
//!
//! Only the first such file that matches a device counts, so ours repeats what the one says that
//! counts now: otherwise the device would have another name after the next boot.

use std::fmt::Write;

use base::quantity::Unit;
use netdev::setters;

use super::file::{File, MARK, Subject};
use crate::setting::{Mechanism, Setting, State, Value, ValueKind};

/// What the default file of systemd says of names and addresses.
const USUAL_LINK: [&str; 3] = [
    "NamePolicy=keep kernel database onboard slot path",
    "AlternativeNamesPolicy=database onboard slot path mac",
    "MACAddressPolicy=persistent",
];

pub(super) fn path(device: &str) -> String {
    format!("/etc/systemd/network/70-earmark-{device}.link")
}

/// The key of a setting in the `[Link]` section, if there is one.
pub fn link_key(setting: Setting) -> Option<&'static str> {
    let is_of_device = setting.mechanism() == Mechanism::Coalescing;
    setting.parameter().filter(|_| is_of_device).and_then(setters::link_key)
}

pub(super) fn setting_of<'a>(key: &str, value: &'a str) -> Option<(Setting, &'a str)> {
    let setting = Setting::ALL.iter().copied().find(|setting| link_key(*setting) == Some(key))?;
    let value = match (setting.kind(), value) {
        (ValueKind::Switch, "yes") => "on",
        (ValueKind::Switch, "no") => "off",
        (_, value) if setting == Setting::SampleInterval => value.trim_end_matches('s'),
        (_, value) => value,
    };
    Some((setting, value))
}

pub(super) fn without(text: &str, gone: &[Setting]) -> String {
    let keys: Vec<&str> = gone.iter().filter_map(|setting| link_key(*setting)).collect();
    let stays =
        |line: &&str| line.split_once('=').is_none_or(|(key, _)| !keys.contains(&key.trim()));
    text.lines().filter(stays).map(|line| format!("{line}\n")).collect()
}

pub(super) fn link(subject: &Subject, settings: &State) -> Result<File, String> {
    let mut lines = String::new();
    for (setting, value) in &settings.0 {
        let value = match (setting.kind(), value) {
            (ValueKind::Switch, value) => {
                if value == &Value::Switch(true) { "yes" } else { "no" }.into()
            }
            (ValueKind::Number(Unit::Micros), value) => format!("{value}us"),
            (_, value) if *setting == Setting::SampleInterval => format!("{value}s"),
            (_, value) => value.to_string(),
        };
        let _ = writeln!(lines, "{}={value}", link_key(*setting).unwrap_or_default());
    }
    if let Some(first) = &subject.first {
        return Err(format!(
            "{first} counts for {} before a file of ours would; add these lines to its section \
             [Link]:\n{lines}",
            subject.name
        ));
    }
    let matches = match &subject.address {
        Some(address) => format!("PermanentMACAddress={address}"),
        None => format!("OriginalName={}", subject.name),
    };
    let usual = || USUAL_LINK.map(str::to_owned).to_vec();
    let kept = subject.lines.clone().map_or_else(usual, |lines| without_ours(&lines));
    let mut text = format!("{MARK}\n[Match]\n{matches}\n\n[Link]\n");
    kept.iter().for_each(|line| text += &format!("{line}\n"));
    text += &lines;
    Ok(File { path: path(&subject.name), text, is_program: false })
}

/// The lines of the `[Link]` section, but for those of settings.
pub fn link_section(text: &str) -> Vec<String> {
    without_ours(&setters::section(text, "[Link]"))
}

/// Lines whose keys are not those of settings.
fn without_ours(lines: &[String]) -> Vec<String> {
    let keys: Vec<&str> = Setting::ALL.iter().filter_map(|setting| link_key(*setting)).collect();
    let is_ours =
        |line: &&String| line.split('=').next().is_some_and(|key| keys.contains(&key.trim()));
    lines.iter().filter(|line| !is_ours(line)).cloned().collect()
}
