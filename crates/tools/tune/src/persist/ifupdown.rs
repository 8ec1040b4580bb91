//! A stanza for ifupdown (`interfaces(5)`), beside the one that has the addresses: `ifup` applies
//! all stanzas of a device. The script of the package `ethtool` in `/etc/network/if-up.d` takes
//! `hardware-irq-coalesce-` options, and `up` runs the rest.

use super::file::{File, Subject, head};
use super::words::commands;
use crate::setting::{Mechanism, State};

pub(super) fn path(device: &str) -> String {
    format!("/etc/network/interfaces.d/earmark-{device}")
}

pub(super) fn file(subject: &Subject, settings: &State) -> File {
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
    File { path: path(name), text, is_program: false }
}
