//! Files with commands: of NetworkManager, ifupdown and TuneD.
//!
//! NetworkManager runs a dispatcher script (`NetworkManager-dispatcher(8)`) when it has brought a
//! device up. A connection profile can say most of it, too (`nm-settings-keyfile(5)`, `[ethtool]`).
//! But profiles hold addresses, and have no files that are dropped in: a profile of ours would take
//! the place of the one that connects the host. So the script says what to add to it.
//!
//! A stanza of ifupdown (`interfaces(5)`) is beside the one that has the addresses: `ifup` applies
//! all stanzas of a device. The script of the package `ethtool` in `/etc/network/if-up.d` takes
//! `hardware-irq-coalesce-` options, and `up` runs the rest.
//!
//! A profile for TuneD (`tuned.conf(5)`) is to be active beside another one: `tuned-adm profile
//! OTHER earmark-DEV`. Units have names of their own, so they replace none of the other profile.
//! A script sets coalescing. The option `coalesce` of TuneD's own plugin sets nothing wherever
//! `ethtool -c` prints a line that TuneD does not know, as it does from ethtool 5.15 to TuneD 2.25
//! (TuneD's issue 726), and again for newer lines (819).

use std::fmt::Write;

use super::file::{File, IFUPDOWN, NETWORK_MANAGER, Subject, TUNED, head};
use super::systemd::link_key;
use super::words::{commands, ethtool_runs, sysctl, sysfs};
use crate::setting::{Mechanism, State, Value};

pub(super) fn dispatcher(subject: &Subject, settings: &State) -> File {
    let name = &subject.name;
    let mut text = format!("#!/bin/sh\n{}", head(settings));
    if let Some(words) = profile(settings) {
        text += &format!("# The same in a profile: nmcli connection modify PROFILE{words}\n");
    }
    text += "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin\n";
    text += &format!("case \"$1 $2\" in\n\"{name} up\" | \"{name} reapply\")\n");
    commands(name, settings).iter().for_each(|command| text += &format!("    {command}\n"));
    text += "    ;;\nesac\n";
    File::program(NETWORK_MANAGER, subject, text)
}

/// The properties of a connection profile, for `nmcli connection modify`; those of coalescing are
/// the ones that a `.link` file knows. `None` if there are none.
fn profile(settings: &State) -> Option<String> {
    let mut words = String::new();
    for (setting, value) in &settings.0 {
        if link_key(*setting).is_some() {
            let number = Value::number(value).unwrap_or_default();
            let _ = write!(words, " ethtool.coalesce-{setting} {number}");
        }
    }
    (!words.is_empty()).then_some(words)
}

pub(super) fn stanza(subject: &Subject, settings: &State) -> File {
    let name = &subject.name;
    let mut text = format!("{}iface {name} inet manual\n", head(settings));
    for (setting, value) in &settings.0 {
        if setting.mechanism() == Mechanism::Coalescing {
            text += &format!("    hardware-irq-coalesce-{setting} {value}\n");
        }
    }
    let others = settings.only(|setting| setting.mechanism() != Mechanism::Coalescing);
    for command in commands(name, &others) {
        text += &format!("    up {command}\n");
    }
    File::new(IFUPDOWN, subject, text)
}

pub(super) fn profile_files(subject: &Subject, settings: &State) -> Vec<File> {
    let name = &subject.name;
    let [profile, script] = TUNED[usize::from(subject.has_tuned_profiles)];
    let mut text = head(settings);
    text += &format!("[main]\nsummary=Interrupt coalescing of {name}\n");
    let mut files = Vec::new();
    let runs = ethtool_runs(name, settings);
    if !runs.is_empty() {
        text += &unit(
            &format!("earmark-{name}"),
            "script",
            std::iter::once("script=${i:PROFILE_DIR}/coalescing.sh\n".into()),
        );
        let runs: String = runs.iter().map(|run| format!("ethtool {run}\n")).collect();
        let program = format!(
            "#!/bin/sh\n{}PATH=/usr/sbin:/usr/bin:/sbin:/bin\n[ \"$1\" = start ] || exit 0\n{runs}",
            head(settings)
        );
        files.push(File::program(script, subject, program));
    }
    let lines = sysfs(settings).map(|(file, it)| format!("/sys/class/net/{name}/{file}={it}\n"));
    text += &unit(&format!("earmark-{name}-sysfs"), "sysfs", lines);
    let lines = sysctl(settings).map(|(name, value)| format!("{name}={value}\n"));
    text += &unit("earmark-sysctl", "sysctl", lines);
    files.push(File::new(profile, subject, text));
    files
}

/// A unit with its lines; nothing if it has none.
fn unit(name: &str, kind: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n[{name}]\ntype={kind}\n{lines}") }
}
