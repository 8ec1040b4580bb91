//! A file of ours, and how it is known from those of others.

use crate::setting::State;

/// What each file of ours begins with, after the line that names its interpreter if it has one;
/// others are never overwritten.
pub(crate) const MARK: &str =
    "# Written by `earmark persist`; it replaces or removes only files that begin like this.";

const SETTINGS: &str = "# Settings: ";

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path, from the root.
    pub path: String,
    /// All of its text.
    pub text: String,
    /// Whether it is a program.
    pub is_program: bool,
}

/// What is known of a device, for a file that has to find it after a boot.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The name of the device.
    pub name: String,
    /// Its Ethernet address that no program has changed, if it has one.
    pub address: Option<String>,
    /// A `.link` file of somebody else's that counts before ours would.
    pub first: Option<String>,
    /// What the `.link` file says that would count without ours: the lines of its `[Link]` section,
    /// and of what is dropped in.
    pub lines: Option<Vec<String>>,
    /// Whether profiles of TuneD have a directory of their own, as from version 2.23 on.
    pub has_tuned_profiles: bool,
}

/// Whether a text is that of a file of ours.
pub fn is_ours(text: &str) -> bool {
    text.starts_with(MARK)
        || text
            .split_once('\n')
            .is_some_and(|(first, rest)| first.starts_with("#!") && rest.starts_with(MARK))
}

pub(super) fn head(settings: &State) -> String {
    format!("{MARK}\n{SETTINGS}{settings}\n")
}

/// The settings of such a file; `None` if it has no such line.
pub(super) fn settings_in_head(text: &str) -> Option<State> {
    let words = text.lines().take(3).find_map(|line| line.strip_prefix(SETTINGS))?;
    words.parse().ok()
}
