//! A dispatcher script (`NetworkManager-dispatcher(8)`), which NetworkManager runs when it has
//! brought a device up.
//!
//! A connection profile can say most of it, too (`nm-settings-keyfile(5)`, `[ethtool]`). But
//! profiles hold addresses, and have no files that are dropped in: a profile of ours would take the
//! place of the one that connects the host. So the script says what to add to it.

use std::fmt::Write;

use super::file::{File, Subject, head};
use super::link::link_key;
use super::words::commands;
use crate::setting::{State, Value};

pub(super) fn path(device: &str) -> String {
    format!("/etc/NetworkManager/dispatcher.d/90-earmark-{device}")
}

pub(super) fn file(subject: &Subject, settings: &State) -> File {
    let name = &subject.name;
    let mut text = format!("#!/bin/sh\n{}", head(settings));
    if let Some(words) = profile(settings) {
        text += &format!("# The same in a profile: nmcli connection modify PROFILE{words}\n");
    }
    text += "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin\n";
    text += &format!("case \"$1 $2\" in\n\"{name} up\" | \"{name} reapply\")\n");
    commands(name, settings).iter().for_each(|command| text += &format!("    {command}\n"));
    text += "    ;;\nesac\n";
    File { path: path(name), text, is_program: true }
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
