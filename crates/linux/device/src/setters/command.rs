//! Commands in scripts, rules and stanzas: `ethtool -C DEV NAME VALUE ...`.

use super::traits::{Matches, Settings, Traits};
use crate::ethtool::Parameter;

/// No value has more bytes.
const LONGEST: usize = 20;

pub(super) fn lines(text: &str) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for part in text.lines() {
        let is_comment = line.is_empty() && part.trim_start().starts_with('#');
        match part.strip_suffix('\\') {
            _ if is_comment => {}
            Some(part) => {
                line += part;
                line.push(' ');
            }
            None => lines.push(std::mem::take(&mut line) + part),
        }
    }
    lines.push(line);
    lines
}

/// What commands in a line set; `variable` is whether a device that is a variable of the shell, or
/// of udev, is this one.
pub(super) fn in_line(line: &str, device: &Traits, variable: Matches) -> Vec<(Matches, Settings)> {
    let commands = line.split([';', '&', '|', '(', ')', '`']);
    commands.filter_map(|command| one(command, device, variable)).collect()
}

fn one(command: &str, device: &Traits, variable: Matches) -> Option<(Matches, Settings)> {
    let mut words = command.split(|c: char| c.is_whitespace() || "'\"".contains(c));
    words.find(|word| word.rsplit('/').next() == Some("ethtool"))?;
    let mut words = words.filter(|word| !word.is_empty());
    words.next().filter(|word| matches!(*word, "-C" | "--coalesce"))?;
    let matches = match words.next()? {
        word if word.contains(['$', '%']) => variable,
        word => (word == device.name).into(),
    };
    let mut settings = Settings::new();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        settings.extend(setting(name, value));
    }
    Some((matches, settings))
}

pub(super) fn setting(name: &str, value: &str) -> Option<(String, String)> {
    let parameter: Parameter = name.parse().ok()?;
    let value = match (parameter.is_switch(), value) {
        (true, "0") => "off",
        (true, "1") => "on",
        (_, value) => value,
    };
    let is_one = !value.is_empty() && value.len() <= LONGEST;
    is_one.then(|| (name.to_owned(), value.to_owned()))
}

/// What a script sets, that has its device from a program: which one, only the program knows.
pub(super) fn in_script(text: &str, device: &Traits) -> (Matches, Settings) {
    let lines = lines(text);
    together(lines.iter().flat_map(|line| in_line(line, device, Matches::Perhaps)))
}

pub(super) fn together(
    parts: impl IntoIterator<Item = (Matches, Settings)>,
) -> (Matches, Settings) {
    let (mut sum, mut all) = (None, Settings::new());
    for (matches, settings) in parts.into_iter().filter(|(matches, _)| *matches != Matches::No) {
        all.extend(settings);
        sum = Some(sum.unwrap_or(Matches::Yes).min(matches));
    }
    (sum.unwrap_or(Matches::No), all)
}
