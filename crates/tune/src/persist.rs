//! Files that bring settings back at each boot.
//!
//! - What systemd can say is said in a `.link` file (`systemd.link(5)`). Only the first such file
//!   that matches a device counts, so ours repeats what the one says that counts now: otherwise the
//!   device would have another name after the next boot.
//! - What it cannot say, NAPI deferral above all, is written by a udev rule (`udev(7)`).
//! - Busy polling is of the whole machine: `sysctl.d(5)`.
//!
//! This module makes texts. It reads and writes nothing.

use std::fmt::Write;

use super::setting::{Mechanism, Setting, State, Unit, Value};

/// The first line of each file of ours; others are never overwritten.
pub const MARK: &str =
    "# Written by `earmark persist`; it replaces or removes only files that begin like this.";

/// What the default file of systemd says of names and addresses.
const USUAL_LINK: [&str; 3] = [
    "NamePolicy=keep kernel database onboard slot path",
    "AlternativeNamesPolicy=database onboard slot path mac",
    "MACAddressPolicy=persistent",
];

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path, from the root.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// What is known of a device, for a file that has to find it after a boot.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Its Ethernet address that no program has changed, if it has one.
    pub address: Option<String>,
    /// A `.link` file of somebody else's that counts before ours would.
    pub first: Option<String>,
    /// What the `.link` file says that would count without ours: the lines of its `[Link]` section,
    /// and of what is dropped in.
    pub lines: Option<Vec<String>>,
}

/// The names of the files of a device: those that a `.link` file, a rule and a `sysctl` file have.
#[must_use]
pub fn paths(device: &str) -> [String; 3] {
    [
        format!("/etc/systemd/network/70-earmark-{device}.link"),
        format!("/etc/udev/rules.d/90-earmark-{device}.rules"),
        format!("/etc/sysctl.d/90-earmark-{device}.conf"),
    ]
}

/// The settings that a file of ours brings back.
#[must_use]
pub fn settings_of(text: &str) -> State {
    let mut found = State::default();
    let mut add = |setting: Option<Setting>, value: &str| {
        let Some(setting) = setting else { return };
        let value = match (setting.unit(), value) {
            (Unit::Switch, "yes") => "on",
            (Unit::Switch, "no") => "off",
            (_, value) if setting == Setting::SampleInterval => value.trim_end_matches('s'),
            (_, value) => value,
        };
        if let Ok(value) = setting.parse_value(value) {
            found.0.insert(setting, value);
        }
    };
    let named = |name: &str| name.replace('_', "-").parse::<Setting>().ok();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with("ACTION==") {
            for part in line.split(", ") {
                if let Some((name, value)) =
                    part.strip_prefix("ATTR{").and_then(|rest| rest.split_once("}=\""))
                {
                    add(named(name), value.trim_end_matches('"'));
                } else if let Some((_, command)) = part.split_once("ethtool -C ") {
                    let words: Vec<&str> =
                        command.trim_end_matches('"').split_whitespace().skip(1).collect();
                    words.chunks_exact(2).for_each(|pair| add(named(pair[0]), pair[1]));
                }
            }
        } else if let Some((key, value)) = line.split_once('=') {
            let (key, value) = (key.trim(), value.trim());
            let linked = Setting::ALL.iter().copied().find(|it| link_key(*it) == Some(key));
            add(linked.or_else(|| named(key.strip_prefix("net.core.")?)), value);
        }
    }
    found
}

/// The key of a setting in the `[Link]` section, if there is one.
#[must_use]
pub fn link_key(setting: Setting) -> Option<&'static str> {
    Some(match setting {
        Setting::AdaptiveRx => "UseAdaptiveRxCoalesce",
        Setting::AdaptiveTx => "UseAdaptiveTxCoalesce",
        Setting::RxUsecs => "RxCoalesceSec",
        Setting::RxFrames => "RxMaxCoalescedFrames",
        Setting::RxUsecsIrq => "RxIrqCoalesceSec",
        Setting::RxFramesIrq => "RxMaxIrqCoalescedFrames",
        Setting::TxUsecs => "TxCoalesceSec",
        Setting::TxFrames => "TxMaxCoalescedFrames",
        Setting::TxUsecsIrq => "TxIrqCoalesceSec",
        Setting::TxFramesIrq => "TxMaxIrqCoalescedFrames",
        Setting::PktRateLow => "CoalescePacketRateLow",
        Setting::RxUsecsLow => "RxLowCoalesceSec",
        Setting::RxFramesLow => "RxMaxLowCoalescedFrames",
        Setting::TxUsecsLow => "TxLowCoalesceSec",
        Setting::TxFramesLow => "TxMaxLowCoalescedFrames",
        Setting::PktRateHigh => "CoalescePacketRateHigh",
        Setting::RxUsecsHigh => "RxHighCoalesceSec",
        Setting::RxFramesHigh => "RxMaxHighCoalescedFrames",
        Setting::TxUsecsHigh => "TxHighCoalesceSec",
        Setting::TxFramesHigh => "TxMaxHighCoalescedFrames",
        Setting::SampleInterval => "CoalescePacketRateSampleIntervalSec",
        Setting::StatsBlockUsecs => "StatisticsBlockCoalesceSec",
        _ => return None,
    })
}

/// A file of ours for device `name` without some settings; `None` if it has no others.
#[must_use]
pub fn without(name: &str, text: &str, gone: &[Setting]) -> Option<String> {
    let left = settings_of(text).only(|setting| !gone.contains(&setting));
    if left.0.is_empty() {
        return None;
    }
    if !text.contains("[Link]") {
        let subject = Subject { name: name.to_owned(), ..Subject::default() };
        return files(&subject, &left).ok()?.pop().map(|file| file.text);
    }
    let keys: Vec<&str> = gone.iter().filter_map(|setting| link_key(*setting)).collect();
    let stays = |line: &&str| line.split_once('=').is_none_or(|(key, _)| !keys.contains(&key));
    Some(text.lines().filter(stays).map(|line| format!("{line}\n")).collect())
}

/// The files that bring `settings` back.
///
/// # Errors
/// If a `.link` file of somebody else counts first; the message has the lines to add there.
pub fn files(subject: &Subject, settings: &State) -> Result<Vec<File>, String> {
    let linked = settings.only(|setting| link_key(setting).is_some());
    let others = settings.only(|setting| {
        link_key(setting).is_none() && setting.mechanism() != Mechanism::BusyPolling
    });
    let busy = settings.only(|setting| setting.mechanism() == Mechanism::BusyPolling);
    let mut files = Vec::new();
    if !linked.0.is_empty() {
        files.push(link(subject, &linked)?);
    }
    if !others.0.is_empty() {
        files.push(rule(subject, &others));
    }
    if !busy.0.is_empty() {
        files.push(sysctl(subject, &busy));
    }
    Ok(files)
}

fn link(subject: &Subject, settings: &State) -> Result<File, String> {
    let [path, ..] = paths(&subject.name);
    let mut lines = String::new();
    for (setting, value) in &settings.0 {
        let value = match (setting.unit(), value) {
            (Unit::Switch, value) => {
                if value == &Value::Switch(true) { "yes" } else { "no" }.into()
            }
            (Unit::Micros, value) => format!("{value}us"),
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
    Ok(File { path, text })
}

/// The lines of the `[Link]` section, but for those of settings.
#[must_use]
pub fn link_section(text: &str) -> Vec<String> {
    without_ours(&section(text, "[Link]"))
}

/// The lines of a section that assign something.
#[must_use]
pub fn section(text: &str, title: &str) -> Vec<String> {
    let mut is_in = false;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_in = line == title;
        } else if is_in && line.contains('=') && !line.starts_with(['#', ';']) {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// Lines whose keys are not those of settings.
fn without_ours(lines: &[String]) -> Vec<String> {
    let keys: Vec<&str> = Setting::ALL.iter().filter_map(|setting| link_key(*setting)).collect();
    let is_ours =
        |line: &&String| line.split('=').next().is_some_and(|key| keys.contains(&key.trim()));
    lines.iter().filter(|line| !is_ours(line)).cloned().collect()
}

fn rule(subject: &Subject, settings: &State) -> File {
    let name = &subject.name;
    let mut does = String::new();
    let mut ethtool = String::new();
    for (setting, value) in &settings.0 {
        match setting.mechanism() {
            Mechanism::Deferral => {
                let file = setting.name().replace('-', "_");
                let _ = write!(does, ", ATTR{{{file}}}=\"{value}\"");
            }
            _ => {
                let _ = write!(ethtool, " {setting} {value}");
            }
        }
    }
    if !ethtool.is_empty() {
        let _ = write!(does, ", RUN+=\"/usr/sbin/ethtool -C {name}{ethtool}\"");
    }
    // The name that it will have; or, where nothing names devices, the kernel's.
    let text = format!(
        "{MARK}\n\
         ACTION==\"add\", SUBSYSTEM==\"net\", NAME==\"{name}\"{does}\n\
         ACTION==\"add\", SUBSYSTEM==\"net\", NAME==\"\", KERNEL==\"{name}\"{does}\n"
    );
    let [_, path, _] = paths(name);
    File { path, text }
}

fn sysctl(subject: &Subject, settings: &State) -> File {
    let mut text = format!("{MARK}\n");
    for (setting, value) in &settings.0 {
        let _ = writeln!(text, "net.core.{} = {value}", setting.name().replace('-', "_"));
    }
    let [.., path] = paths(&subject.name);
    File { path, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Change;

    fn state(text: &str) -> State {
        State(text.parse::<Change>().unwrap().0.into_iter().collect())
    }

    fn subject() -> Subject {
        Subject {
            name: "enp1s0".into(),
            address: Some("02:00:00:00:00:01".into()),
            first: None,
            lines: Some(section(LINK, "[Link]")),
        }
    }

    const LINK: &str = "# SPDX\n[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep path\n; no=1\n\
                        RxCoalesceSec=3us\nMACAddressPolicy=persistent\n[Other]\nX=1\n";

    #[test]
    fn a_link_file_keeps_what_names_the_device() {
        let files = files(&subject(), &state("adaptive-rx off rx-usecs 50 rx-frames 0")).unwrap();
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].path, "/etc/systemd/network/70-earmark-enp1s0.link");
        let expected = format!(
            "{MARK}\n[Match]\nPermanentMACAddress=02:00:00:00:00:01\n\n[Link]\nNamePolicy=keep path\n\
             MACAddressPolicy=persistent\nUseAdaptiveRxCoalesce=no\nRxCoalesceSec=50us\n\
             RxMaxCoalescedFrames=0\n"
        );
        assert_eq!(files[0].text, expected);
    }

    #[test]
    fn somebody_elses_file_that_counts_first_is_left_alone() {
        let first = Some("/etc/systemd/network/10-lan.link".into());
        let refusal = files(&Subject { first, ..subject() }, &state("rx-usecs 50")).unwrap_err();
        assert!(refusal.contains("10-lan.link") && refusal.contains("\nRxCoalesceSec=50us\n"));
    }

    #[test]
    fn files_of_ours_are_read_back() {
        for setting in Setting::ALL.iter().filter(|setting| **setting != Setting::Strategy) {
            let value = match setting.unit() {
                Unit::Switch => Value::Switch(false),
                _ => Value::Number(7),
            };
            let state = State([(*setting, value)].into());
            let files = files(&subject(), &state).unwrap();
            assert_eq!(settings_of(&files[0].text), state, "{}", files[0].text);
        }
    }

    #[test]
    fn what_a_link_file_cannot_say_is_a_rule() {
        let settings =
            state("gro-flush-timeout 20us napi-defer-hard-irqs 2 cqe-mode-rx on busy-poll 50");
        let files =
            files(&Subject { name: "eth0".into(), ..Subject::default() }, &settings).unwrap();
        assert_eq!(files.len(), 2);
        assert_eq!(files[0].path, "/etc/udev/rules.d/90-earmark-eth0.rules");
        let does = "RUN+=\"/usr/sbin/ethtool -C eth0 cqe-mode-rx on\"";
        assert!(files[0].text.contains(
            "NAME==\"eth0\", ATTR{gro_flush_timeout}=\"20000\", \
                                         ATTR{napi_defer_hard_irqs}=\"2\", "
        ));
        assert_eq!(files[0].text.matches(does).count(), 2);
        assert!(files[1].text.ends_with("net.core.busy_poll = 50\n"));
    }

    #[test]
    fn every_setting_of_coalescing_can_be_said_somehow() {
        for setting in Setting::ALL.iter().filter(|setting| **setting != Setting::Strategy) {
            let value = match setting.unit() {
                Unit::Switch => Value::Switch(true),
                _ => Value::Number(7),
            };
            let state = State([(*setting, value)].into());
            let files = files(&subject(), &state).unwrap();
            assert_eq!(files.len(), 1, "{setting}");
        }
    }
}
