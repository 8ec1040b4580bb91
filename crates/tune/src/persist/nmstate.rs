//! A state for nmstate, in YAML: an interface with `ethtool: coalesce:`, whose names are those of
//! `ethtool`.

use super::file::{Subject, head};
use crate::setting::{State, Value};

/// The text.
pub(super) fn text(subject: &Subject, settings: &State) -> String {
    let mut text = format!(
        "{}interfaces:\n  - name: {}\n    type: ethernet\n    state: up\n    ethtool:\n      \
         coalesce:\n",
        head(settings),
        yaml(&subject.name)
    );
    for (setting, value) in &settings.0 {
        let value = match value {
            Value::Switch(is_on) => is_on.to_string(),
            value => value.to_string(),
        };
        text += &format!("        {setting}: {value}\n");
    }
    text
}

/// A text as YAML has it, whatever it looks like: a name may be a number.
pub(super) fn yaml(text: &str) -> String {
    format!("\"{text}\"")
}
