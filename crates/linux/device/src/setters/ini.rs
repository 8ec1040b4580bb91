//! Files of sections: those of systemd, NetworkManager and TuneD.

/// The lines of a section that assign something.
pub fn section(text: &str, title: &str) -> Vec<String> {
    let mut is_in = false;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_in = line == title;
        } else if is_in && line.contains('=') && !line.starts_with(['#', ';']) {
            lines.push(line.to_owned());
        }
    }
    lines
}

pub(super) fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    Some((name.trim(), value.trim()))
}

pub(super) fn value(text: &str, title: &str, name: &str) -> Option<String> {
    let lines = section(text, title);
    let mut values = lines.iter().filter_map(|line| assignment(line));
    Some(values.rfind(|(key, _)| *key == name)?.1.to_owned())
}
