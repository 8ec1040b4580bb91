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
    /// The `.link` file that counts for it now.
    pub link_file: Option<String>,
    /// The text of that file.
    pub link_text: Option<String>,
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
        files.push(sysctl(&busy));
    }
    Ok(files)
}

/// The name of our `.link` file.
fn link_name(subject: &Subject) -> String {
    format!("70-earmark-{}.link", subject.name)
}

fn link(subject: &Subject, settings: &State) -> Result<File, String> {
    let name = link_name(subject);
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
    let current = subject.link_file.as_deref().and_then(|path| path.rsplit('/').next());
    if let Some(current) = current.filter(|current| *current < name.as_str()) {
        return Err(format!(
            "{current} counts for {} before a file of ours would; add these lines to its section \
             [Link]:\n{lines}",
            subject.name
        ));
    }
    let matches = match &subject.address {
        Some(address) => format!("PermanentMACAddress={address}"),
        None => format!("OriginalName={}", subject.name),
    };
    let kept = subject.link_text.as_deref().filter(|text| !text.starts_with(MARK));
    let kept = match (kept, &subject.link_text) {
        (Some(text), _) => link_section(text),
        // Ours counts already; what it has taken over from the one before, it takes over again.
        (None, Some(ours)) => without_ours(&link_section(ours)),
        (None, None) => USUAL_LINK.map(str::to_owned).to_vec(),
    };
    let mut text = format!("{MARK}\n[Match]\n{matches}\n\n[Link]\n");
    kept.iter().for_each(|line| text += &format!("{line}\n"));
    text += &lines;
    Ok(File { path: format!("/etc/systemd/network/{name}"), text })
}

/// The lines of the `[Link]` section.
fn link_section(text: &str) -> Vec<String> {
    let mut is_link = false;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_link = line == "[Link]";
        } else if is_link && line.contains('=') && !line.starts_with(['#', ';']) {
            lines.push(line.to_owned());
        }
    }
    without_ours(&lines)
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
    File { path: format!("/etc/udev/rules.d/90-earmark-{name}.rules"), text }
}

fn sysctl(settings: &State) -> File {
    let mut text = format!("{MARK}\n");
    for (setting, value) in &settings.0 {
        let _ = writeln!(text, "net.core.{} = {value}", setting.name().replace('-', "_"));
    }
    File { path: "/etc/sysctl.d/90-earmark.conf".into(), text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::setting::Change;

    fn state(text: &str) -> State {
        State(text.parse::<Change>().unwrap().0.into_iter().collect())
    }

    fn subject() -> Subject {
        Subject {
            name: "enp1s0".into(),
            address: Some("02:00:00:00:00:01".into()),
            link_file: Some("/usr/lib/systemd/network/99-default.link".into()),
            link_text: Some(
                "# SPDX\n[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep path\n; no=1\n\
                 RxCoalesceSec=3us\nMACAddressPolicy=persistent\n[Other]\nX=1\n"
                    .into(),
            ),
        }
    }

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
        // Once ours counts, it is written again the same.
        let again = Subject {
            link_file: Some(files[0].path.clone()),
            link_text: Some(files[0].text.clone()),
            ..subject()
        };
        let second = super::files(&again, &state("rx-usecs 20")).unwrap();
        assert!(second[0].text.ends_with(
            "[Link]\nNamePolicy=keep path\nMACAddressPolicy=persistent\nRxCoalesceSec=20us\n"
        ));
    }

    #[test]
    fn somebody_elses_file_that_counts_first_is_left_alone() {
        let link_file = Some("/etc/systemd/network/10-lan.link".into());
        let refusal =
            files(&Subject { link_file, ..subject() }, &state("rx-usecs 50")).unwrap_err();
        assert!(refusal.contains("10-lan.link") && refusal.contains("\nRxCoalesceSec=50us\n"));
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
