//! A file of ours, and how it is known from those of others.

use super::systemd::escaped;
use crate::setting::State;

/// What each file of ours begins with, after the line that names its interpreter if it has one;
/// others are never overwritten.
pub(crate) const MARK: &str =
    "# Written by `earmark persist`; it replaces or removes only files that begin like this.";

const SETTINGS: &str = "# Settings: ";

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path, from the root.
    pub path: String,
    /// All of its text.
    pub text: String,
    /// Whether it is a program.
    pub is_program: bool,
}

/// The paths of files, with `*` for the device.
pub(super) const LINK: &str = "/etc/systemd/network/70-earmark-*.link";
pub(super) const UDEV: &str = "/etc/udev/rules.d/90-earmark-*.rules";
pub(super) const SYSCTL: &str = "/etc/sysctl.d/90-earmark-*.conf";
pub(super) const SERVICE: &str = "/etc/systemd/system/earmark-*.service";
pub(super) const DROP_IN: &str =
    "/etc/systemd/system/sys-subsystem-net-devices-*.device.d/earmark.conf";
pub(super) const NETWORK_MANAGER: &str = "/etc/NetworkManager/dispatcher.d/90-earmark-*";
pub(super) const IFUPDOWN: &str = "/etc/network/interfaces.d/earmark-*";
/// Profile and script; TuneD 2.23 has moved them.
pub(super) const TUNED: [[&str; 2]; 2] = [
    ["/etc/tuned/earmark-*/tuned.conf", "/etc/tuned/earmark-*/coalescing.sh"],
    ["/etc/tuned/profiles/earmark-*/tuned.conf", "/etc/tuned/profiles/earmark-*/coalescing.sh"],
];

/// Units have names of their own for devices.
pub(super) fn path(pattern: &str, device: &str) -> String {
    match pattern.starts_with("/etc/systemd/system/") {
        true => pattern.replace('*', &escaped(device)),
        false => pattern.replace('*', device),
    }
}

impl File {
    pub(super) fn new(pattern: &str, subject: &Subject, text: String) -> Self {
        Self { path: path(pattern, &subject.name), text, is_program: false }
    }

    pub(super) fn program(pattern: &str, subject: &Subject, text: String) -> Self {
        Self { is_program: true, ..Self::new(pattern, subject, text) }
    }
}

/// What is known of a device, for a file that has to find it after a boot.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The name of the device.
    pub name: String,
    /// Its Ethernet address that no program has changed, if it has one.
    pub address: Option<String>,
    /// A `.link` file of somebody else's that counts before ours would.
    pub first: Option<String>,
    /// What the `.link` file says that would count without ours: the lines of its `[Link]` section,
    /// and of what is dropped in.
    pub lines: Option<Vec<String>>,
    /// Whether profiles of TuneD have a directory of their own, as from version 2.23 on.
    pub has_tuned_profiles: bool,
}

/// Whether a text is that of a file of ours.
pub fn is_ours(text: &str) -> bool {
    text.starts_with(MARK)
        || text
            .split_once('\n')
            .is_some_and(|(first, rest)| first.starts_with("#!") && rest.starts_with(MARK))
}

pub(super) fn head(settings: &State) -> String {
    format!("{MARK}\n{SETTINGS}{settings}\n")
}

/// The settings of such a file; `None` if it has no such line.
pub(super) fn settings_in_head(text: &str) -> Option<State> {
    let words = text.lines().take(3).find_map(|line| line.strip_prefix(SETTINGS))?;
    words.parse().ok()
}
