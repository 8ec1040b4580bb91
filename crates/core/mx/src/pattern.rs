//! Which messages a receive takes.

use crate::ids::PeerId;

/// The messages that a receive takes: those whose match information agrees with `info` in all bits
/// of `mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The match information that is wanted.
    pub info: u64,
    /// The bits of it that count.
    pub mask: u64,
}

impl Match {
    /// Fits every message.
    pub const ANY: Self = Self { info: 0, mask: 0 };

    /// Messages with exactly this match information.
    #[must_use]
    pub const fn exact(info: u64) -> Self {
        Self { info, mask: !0 }
    }

    /// Whether a message with this match information fits.
    #[must_use]
    pub const fn accepts(self, match_info: u64) -> bool {
        (match_info ^ self.info) & self.mask == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) source: Option<PeerId>,
    pub(crate) wanted: Match,
}

impl Pattern {
    pub(crate) fn fits(&self, match_info: u64, source: PeerId) -> bool {
        self.wanted.accepts(match_info) && self.source.is_none_or(|wanted| wanted == source)
    }
}
