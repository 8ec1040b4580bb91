//! How a thread waits for a moment or for what comes before it.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// How a thread waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Sleep until a frame comes or the deadline is there.
    #[default]
    Sleep,
    /// Sleep, but spin for the last 150 us before a deadline: holds are exact, and an idle NIC
    /// costs nothing.
    Precise,
    /// Never sleep: a core for the NIC.
    Spin,
}

impl Waiting {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Sleep, "sleep"), (Self::Precise, "precise"), (Self::Spin, "spin")];
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            Self::ALL.iter().find(|(waiting, _)| waiting == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for Waiting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text).map(|(waiting, _)| *waiting);
        found.ok_or_else(|| {
            format!("no way to wait is called `{text}`; there are sleep, precise, spin")
        })
    }
}
