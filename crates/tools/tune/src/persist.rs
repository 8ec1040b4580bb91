//! Files that bring settings back at each boot, in the format of whatever sets up the network.
//!
//! One description, a [`Subject`] and its settings, has a writer for each [`Format`]. Programs that
//! read a directory get a file there; what belongs into somebody's repository is a text.
//!
//! This module makes texts. It reads and writes nothing.

mod file;
mod printed;
mod scripts;
mod systemd;
mod words;

use clap::ValueEnum;

use crate::setting::{Mechanism, Setting, State};
use file::{
    DROP_IN, IFUPDOWN, LINK, NETWORK_MANAGER, SERVICE, SYSCTL, TUNED, UDEV, path, settings_in_head,
};
pub use file::{File, Subject, is_ours};
pub use systemd::{link_key, link_section};

/// Who brings the settings back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lowercase")]
pub enum Format {
    /// A systemd .link file, a udev rule for what that cannot say, sysctl.d for sysctls, and a
    /// service for what takes a device that is up
    Systemd,
    /// A systemd .link file alone
    Link,
    /// A udev rule alone
    Udev,
    /// A dispatcher script of NetworkManager
    NetworkManager,
    /// A stanza of ifupdown
    Ifupdown,
    /// A profile of TuneD
    Tuned,
    /// A state for nmstate, printed
    Nmstate,
    /// A playbook for Ansible, printed
    Ansible,
    /// A module for NixOS, printed
    Nixos,
}

/// What a format makes of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Files that have their places.
    Files(Vec<File>),
    /// A text for a repository.
    Text(String),
}

impl Format {
    /// The paths that files of a device may have in any format, each once, with the narrowest
    /// format that has it.
    pub fn files_of(device: &str) -> Vec<(Self, String)> {
        let narrow = [Self::Link, Self::Udev, Self::NetworkManager, Self::Ifupdown, Self::Tuned];
        let mut files: Vec<(Self, String)> = Vec::new();
        for format in narrow.into_iter().chain([Self::Systemd]) {
            for path in format.paths(device) {
                if files.iter().all(|(_, known)| *known != path) {
                    files.push((format, path));
                }
            }
        }
        files
    }

    /// Its name, as `--as` takes it.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether it can say a setting.
    pub fn can_say(self, setting: Setting) -> bool {
        match setting.mechanism() {
            Mechanism::Strategy => false,
            Mechanism::Coalescing => self != Self::Link || link_key(setting).is_some(),
            Mechanism::Deferral => self != Self::Link,
            Mechanism::QueueCoalescing => !matches!(self, Self::Link | Self::Ansible),
            // They take a device that is up; udev runs before.
            _ if words::needs_device_up(setting) => matches!(
                self,
                Self::Systemd | Self::NetworkManager | Self::Ifupdown | Self::Nmstate
            ),
            _ => matches!(self, Self::Systemd | Self::Tuned | Self::Ansible | Self::Nixos),
        }
    }

    /// The paths that files of a device may have; none if it is a text for a repository.
    pub fn paths(self, device: &str) -> Vec<String> {
        let patterns: &[&str] = match self {
            Self::Systemd => &[LINK, UDEV, SYSCTL, SERVICE, DROP_IN],
            Self::Link => &[LINK],
            Self::Udev => &[UDEV],
            Self::NetworkManager => &[NETWORK_MANAGER],
            Self::Ifupdown => &[IFUPDOWN],
            Self::Tuned => TUNED.as_flattened(),
            Self::Nmstate | Self::Ansible | Self::Nixos => &[],
        };
        patterns.iter().map(|pattern| path(pattern, device)).collect()
    }

    /// What brings `settings` back.
    ///
    /// # Errors
    /// If it cannot say one of them, or not of a device with such a name; or if a `.link` file of
    /// somebody else counts first: the message has the lines to add there.
    pub fn write(self, subject: &Subject, settings: &State) -> Result<Written, String> {
        self.check(&subject.name, settings)?;
        Ok(match self {
            Self::Systemd => Written::Files(systemd::files(subject, settings)?),
            Self::Link => Written::Files(vec![systemd::link_file(subject, settings)?]),
            Self::Udev => Written::Files(vec![systemd::udev_file(subject, settings)]),
            Self::NetworkManager => Written::Files(vec![scripts::dispatcher(subject, settings)]),
            Self::Ifupdown => Written::Files(vec![scripts::stanza(subject, settings)]),
            Self::Tuned => Written::Files(scripts::profile_files(subject, settings)),
            Self::Nmstate => Written::Text(printed::nmstate(subject, settings)),
            Self::Ansible => Written::Text(printed::ansible(subject, settings)),
            Self::Nixos => Written::Text(printed::nixos(subject, settings)),
        })
    }

    fn check(self, device: &str, settings: &State) -> Result<(), String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:-@".contains(c);
        if !device.chars().all(is_plain) || device.is_empty() {
            return Err(format!(
                "the name of {device} has characters that files would have to quote; give it \
                 another (ip link set {device} name NEW)"
            ));
        }
        let cannot = settings.only(|setting| !self.can_say(setting));
        if cannot.0.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = cannot.0.keys().map(|setting| setting.name()).collect();
        let all = |format: &&Self| cannot.0.keys().all(|setting| format.can_say(*setting));
        let able: Vec<String> =
            Self::value_variants().iter().filter(all).map(|format| format.name()).collect();
        Err(format!(
            "{} cannot say {}; those that can: --as {}",
            self.name(),
            names.join(", "),
            able.join(", ")
        ))
    }
}

/// The settings that a file of ours brings back.
pub fn settings_of(text: &str) -> State {
    if let Some(settings) = settings_in_head(text) {
        return settings;
    }
    let mut found = State::default();
    let mut add = |(setting, value): (Setting, &str)| {
        if let Ok(value) = setting.parse_value(value) {
            found.0.insert(setting, value);
        }
    };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with("ACTION==") {
            systemd::udev_pairs(line).into_iter().for_each(&mut add);
        } else if let Some((key, value)) = line.split_once('=') {
            let (key, value) = (key.trim(), value.trim());
            let setting = systemd::setting_of_link(key, value)
                .or_else(|| systemd::setting_of_sysctl(key, value));
            setting.into_iter().for_each(&mut add);
        }
    }
    found
}

/// A file of ours for device `name` without some settings; `None` if it has no others.
pub fn without(format: Format, name: &str, text: &str, gone: &[Setting]) -> Option<String> {
    let left = settings_of(text).only(|setting| !gone.contains(&setting));
    if left.0.is_empty() {
        return None;
    }
    let subject = Subject { name: name.to_owned(), ..Subject::default() };
    if text.contains("\n[Link]\n") {
        return Some(systemd::without_lines(text, gone));
    }
    if text.contains("\nACTION==") {
        return Some(systemd::udev_file(&subject, &left).text);
    }
    match format.write(&subject, &left).ok()? {
        Written::Files(files) => {
            let kind = |text: &str| (text.starts_with("#!"), text.contains("\n[Service]\n"));
            let mut texts = files.into_iter().map(|file| file.text);
            texts.find(|other| kind(other) == kind(text))
        }
        Written::Text(text) => Some(text),
    }
}

#[cfg(test)]
mod tests;
