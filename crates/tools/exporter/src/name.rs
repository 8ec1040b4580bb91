//! Names of devices, and what drivers and firmware say, as labels.

/// The text as a label: control characters and backslashes are escaped, so that no terminal obeys
/// one and no two names become the same.
#[must_use]
pub(crate) fn label(name: &str) -> String {
    let mut label = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() || c == '\\' {
            label.extend(c.escape_default());
        } else {
            label.push(c);
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_different_and_can_be_printed() {
        assert_eq!(label("eth0"), "eth0");
        assert_eq!(label("größe"), "größe");
        assert_eq!(label("e\u{1b}[2J\u{9b}"), "e\\u{1b}[2J\\u{9b}");
        assert_ne!(label("e\u{1b}"), label("e\\u{1b}"));
    }
}
