//! A state for nmstate, in YAML: an interface with `ethtool: coalesce:`, whose names are those of
//! `ethtool`. What it knows no name of is a script that nmstate has NetworkManager run.

use super::file::{Subject, head};
use super::link::link_key;
use super::words::commands;
use crate::setting::{State, Value};

/// The text. Of coalescing, nmstate knows the names that a `.link` file knows, and refuses others.
pub(super) fn text(subject: &Subject, settings: &State) -> String {
    let name = &subject.name;
    let mut text = format!(
        "{}interfaces:\n  - name: {}\n    type: ethernet\n    state: up\n",
        head(settings),
        yaml(name)
    );
    let known = settings.only(|setting| link_key(setting).is_some());
    if !known.0.is_empty() {
        text += "    ethtool:\n      coalesce:\n";
    }
    for (setting, value) in &known.0 {
        let value = match value {
            Value::Switch(is_on) => is_on.to_string(),
            value => value.to_string(),
        };
        text += &format!("        {setting}: {value}\n");
    }
    let others = settings.only(|setting| link_key(setting).is_none());
    let commands = commands(name, &others);
    if !commands.is_empty() {
        text += "    dispatch:\n      post-activation: |\n";
    }
    commands.iter().for_each(|command| text += &format!("        {command}\n"));
    text
}

/// A text as YAML has it, whatever it looks like: a name may be a number.
pub(super) fn yaml(text: &str) -> String {
    format!("\"{text}\"")
}
