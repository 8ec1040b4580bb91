//! What systemd itself reads: a `.link` file (`systemd.link(5)`), a udev rule (`udev(7)`), sysctls
//! (`sysctl.d(5)`), and a service.
//!
//! Only the first `.link` file that matches a device counts, so ours repeats what the one says that
//! counts now: otherwise the device would have another name after the next boot.
//!
//! The service (`systemd.service(5)`) is for settings that are to be had only while the device is
//! up: it runs `earmark apply` when systemd sees the device, and again until that succeeds. What
//! starts it is a drop-in of the device's unit (`systemd.device(5)`), so nothing has to be enabled.
//! Both files have the settings in their heads, and are removed together.

use std::fmt::Write;

use base::quantity::Unit;
use netdev::setters;

use super::file::{DROP_IN, File, LINK, MARK, SERVICE, SYSCTL, Subject, UDEV, head};
use super::words::{ethtool_runs, needs_device_up, of_ours, pairs_of_ethtool, sysctl, sysfs};
use crate::setting::{Mechanism, Setting, State, Value, ValueKind};

pub(super) fn files(subject: &Subject, settings: &State) -> Result<Vec<File>, String> {
    let linked = settings.only(|setting| link_key(setting).is_some());
    let busy = settings.only(|setting| setting.mechanism() == Mechanism::Sysctl);
    let ours = settings.only(needs_device_up);
    let others = settings
        .only(|setting| [&linked, &busy, &ours].iter().all(|group| group.get(setting).is_none()));
    let mut files = Vec::new();
    if !linked.0.is_empty() {
        files.push(link_file(subject, &linked)?);
    }
    if !others.0.is_empty() {
        files.push(udev_file(subject, &others));
    }
    if !busy.0.is_empty() {
        files.push(sysctl_file(subject, &busy));
    }
    if !ours.0.is_empty() {
        files.extend(service_files(subject, &ours));
    }
    Ok(files)
}

/// What the default file of systemd says of names and addresses.
const USUAL_LINK: [&str; 3] = [
    "NamePolicy=keep kernel database onboard slot path",
    "AlternativeNamesPolicy=database onboard slot path mac",
    "MACAddressPolicy=persistent",
];

/// The key of a setting in the `[Link]` section, if there is one.
pub fn link_key(setting: Setting) -> Option<&'static str> {
    let is_of_device = setting.mechanism() == Mechanism::Coalescing;
    setting.parameter().filter(|_| is_of_device).and_then(setters::link_key)
}

pub(super) fn setting_of_link<'a>(key: &str, value: &'a str) -> Option<(Setting, &'a str)> {
    let setting = Setting::ALL.iter().copied().find(|setting| link_key(*setting) == Some(key))?;
    let value = match (setting.kind(), value) {
        (ValueKind::Switch, "yes") => "on",
        (ValueKind::Switch, "no") => "off",
        (_, value) if setting == Setting::SampleInterval => value.trim_end_matches('s'),
        (_, value) => value,
    };
    Some((setting, value))
}

pub(super) fn without_lines(text: &str, gone: &[Setting]) -> String {
    let keys: Vec<&str> = gone.iter().filter_map(|setting| link_key(*setting)).collect();
    let stays =
        |line: &&str| line.split_once('=').is_none_or(|(key, _)| !keys.contains(&key.trim()));
    text.lines().filter(stays).map(|line| format!("{line}\n")).collect()
}

pub(super) fn link_file(subject: &Subject, settings: &State) -> Result<File, String> {
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
    Ok(File::new(LINK, subject, text))
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

pub(super) fn udev_file(subject: &Subject, settings: &State) -> File {
    let rules = udev_rules(&subject.name, settings, "/usr/sbin/ethtool");
    File::new(UDEV, subject, format!("{MARK}\n{rules}"))
}

pub(super) fn udev_rules(name: &str, settings: &State, program: &str) -> String {
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

pub(super) fn udev_pairs(line: &str) -> Vec<(Setting, &str)> {
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

pub(super) fn sysctl_file(subject: &Subject, settings: &State) -> File {
    let lines = sysctl(settings).map(|(name, value)| format!("{name} = {value}\n"));
    File::new(SYSCTL, subject, format!("{MARK}\n{}", lines.collect::<String>()))
}

pub(super) fn setting_of_sysctl<'a>(key: &str, value: &'a str) -> Option<(Setting, &'a str)> {
    Some((format!("sysctl:{key}").parse().ok()?, value))
}

pub(super) fn service_files(subject: &Subject, settings: &State) -> [File; 2] {
    let device = &subject.name;
    let head = head(settings);
    let command = of_ours(device, settings).unwrap_or_default();
    let service = format!(
        "{head}[Unit]\n\
         Description=Settings of {device} that it takes while it is up\n\
         After=network-online.target\n\
         StartLimitIntervalSec=10min\n\
         StartLimitBurst=60\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={command}\n\
         # Until the device is up.\n\
         Restart=on-failure\n\
         RestartSec=5\n"
    );
    let drop_in = format!("{head}[Unit]\nWants=earmark-{}.service\n", escaped(device));
    [File::new(SERVICE, subject, service), File::new(DROP_IN, subject, drop_in)]
}

/// A device's name in that of a unit, as `systemd-escape` has it.
pub(super) fn escaped(device: &str) -> String {
    let plain = |(at, c): (usize, char)| match c {
        '.' if at == 0 => format!("\\x{:02x}", u32::from(c)),
        c if c.is_ascii_alphanumeric() || "_.:".contains(c) => c.to_string(),
        c => format!("\\x{:02x}", u32::from(c)),
    };
    device.char_indices().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_systemd_does() {
        assert_eq!(escaped("enp1s0"), "enp1s0");
        assert_eq!(escaped("br-lan.10"), "br\\x2dlan.10");
        assert_eq!(escaped("a@b"), "a\\x40b");
    }
}
