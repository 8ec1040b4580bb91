//! What files say of the device that they are for, and whether it is one.

use std::collections::BTreeMap;

/// Settings: names of `ethtool -C`, or of options of a driver, and values as they take them.
pub type Settings = BTreeMap<String, String>;

/// What of a device the files ask for.
#[derive(Clone, Debug, Default)]
pub struct Traits {
    /// Its name, as the kernel or udev has given it.
    pub name: String,
    /// Its Ethernet address that no program has changed.
    pub address: Option<String>,
    /// The driver, as `ethtool -i` names it.
    pub driver: Option<String>,
    /// Its number, if the tree is that of the machine that it is in.
    pub number: Option<u64>,
}

impl Traits {
    /// Whether a list of patterns has its name; of one that is no pattern it is not known.
    pub(super) fn is_named(&self, patterns: &[&str]) -> Matches {
        any(patterns.iter().map(|pattern| is_like(pattern, Some(&self.name))))
    }

    pub(super) fn has_address(&self, text: &str) -> Matches {
        let plain = |text: &str| text.to_lowercase().replace(['-', '.'], ":");
        self.address.as_ref().map_or(Matches::Perhaps, |own| (plain(own) == plain(text)).into())
    }
}

/// Whether a file is about a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Matches {
    /// It is not.
    No,
    /// It has conditions that cannot be evaluated here.
    Perhaps,
    /// It is for this device.
    Yes,
}

impl From<bool> for Matches {
    fn from(is: bool) -> Self {
        if is { Self::Yes } else { Self::No }
    }
}

impl std::ops::Not for Matches {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::Perhaps => Self::Perhaps,
            Self::No => Self::Yes,
        }
    }
}

pub(super) fn any(each: impl IntoIterator<Item = Matches>) -> Matches {
    each.into_iter().max().unwrap_or(Matches::No)
}

/// Whether a text is like a pattern of a shell; of an unknown text it is not known.
pub(super) fn is_like(pattern: &str, text: Option<&str>) -> Matches {
    match (glob::Pattern::new(pattern), text) {
        (Ok(pattern), Some(text)) => pattern.matches(text).into(),
        _ => Matches::Perhaps,
    }
}
