//! Settings as commands and files of the kernel have them.

use crate::setting::{Mechanism, State};

/// The words that `ethtool -C DEV` takes; `None` if none of the settings is its.
pub(super) fn ethtool(settings: &State) -> Option<String> {
    let words = settings.only(|setting| setting.mechanism() == Mechanism::Coalescing);
    (!words.0.is_empty()).then(|| words.to_string())
}

/// Files below `/sys/class/net/DEV`, and what is written there.
pub(super) fn sysfs(settings: &State) -> impl Iterator<Item = (String, String)> {
    of(settings, Mechanism::Deferral)
}

/// Names of `sysctl(8)`, and their values.
pub(super) fn sysctl(settings: &State) -> impl Iterator<Item = (String, String)> {
    of(settings, Mechanism::BusyPolling).map(|(name, value)| (format!("net.core.{name}"), value))
}

fn of(settings: &State, mechanism: Mechanism) -> impl Iterator<Item = (String, String)> {
    let all = settings.0.iter().filter(move |(setting, _)| setting.mechanism() == mechanism);
    all.map(|(setting, value)| (setting.name().replace('-', "_"), value.to_string()))
}

/// The commands of a shell that bring settings back, one a line.
pub(super) fn commands(name: &str, settings: &State) -> Vec<String> {
    let coalescing = ethtool(settings).map(|words| format!("ethtool -C {name} {words}"));
    let deferral =
        sysfs(settings).map(|(file, value)| format!("echo {value} > /sys/class/net/{name}/{file}"));
    coalescing.into_iter().chain(deferral).collect()
}
