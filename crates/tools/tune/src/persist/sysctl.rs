//! `sysctl.d(5)`: busy polling and other sysctls, which are of the whole machine.

use super::file::{File, MARK, Subject};
use super::words::sysctl;
use crate::setting::{Setting, State};

pub(super) fn path(device: &str) -> String {
    format!("/etc/sysctl.d/90-earmark-{device}.conf")
}

pub(super) fn file(subject: &Subject, settings: &State) -> File {
    let lines = sysctl(settings).map(|(name, value)| format!("{name} = {value}\n"));
    let text = format!("{MARK}\n{}", lines.collect::<String>());
    File { path: path(&subject.name), text, is_program: false }
}

pub(super) fn setting_of<'a>(key: &str, value: &'a str) -> Option<(Setting, &'a str)> {
    Some((format!("sysctl:{key}").parse().ok()?, value))
}
