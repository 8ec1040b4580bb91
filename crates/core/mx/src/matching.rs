//! Which receive a message belongs to.
//!
//! A posted receive takes a message if the message comes from the peer that it names, or from
//! anybody if it names none, and if the match information agrees in all bits of the mask. Receives
//! are tried in the order in which they were posted, waiting messages in the order in which they
//! arrived, and the first that fits is taken (MX API, `mx_irecv`). Messages of one peer arrive in
//! the order in which they were sent, so two that fit the same receives are received in order.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::config::ContextBits;
use crate::ids::{PeerId, ReceiveId};
use crate::waiting::WaitingMessages;

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

/// Receives that wait for messages, and messages that wait for receives.
#[derive(Debug)]
pub(crate) struct Matching {
    bits: ContextBits,
    posted: BTreeMap<u16, VecDeque<(ReceiveId, Pattern)>>,
    /// The messages of all contexts. A mask covers the context, so those of others never fit.
    pub(crate) waiting: WaitingMessages,
}

impl Matching {
    pub(crate) fn new(bits: ContextBits) -> Self {
        let (posted, waiting) = (BTreeMap::new(), WaitingMessages::default());
        Self { bits, posted, waiting }
    }

    pub(crate) fn posted(&self) -> usize {
        self.posted.values().map(VecDeque::len).sum()
    }

    pub(crate) fn post(&mut self, receive: ReceiveId, pattern: Pattern) {
        let context = self.bits.of(pattern.wanted.info);
        self.posted.entry(context).or_default().push_back((receive, pattern));
    }

    /// The receive that a message belongs to; it waits no longer. Adds to `compared` how many
    /// receives were looked at.
    pub(crate) fn match_message(
        &mut self,
        match_info: u64,
        source: PeerId,
        compared: &mut u64,
    ) -> Option<ReceiveId> {
        let posted = self.posted.get_mut(&self.bits.of(match_info))?;
        let place = posted.iter().position(|(_, pattern)| pattern.fits(match_info, source));
        *compared += place.map_or(posted.len(), |place| place + 1) as u64;
        posted.remove(place?).map(|(receive, _)| receive)
    }

    /// A receive waits no longer; false if it did not.
    pub(crate) fn withdraw(&mut self, receive: ReceiveId, match_info: u64) -> bool {
        let Some(posted) = self.posted.get_mut(&self.bits.of(match_info)) else { return false };
        let place = posted.iter().position(|(waiting, _)| *waiting == receive);
        place.is_some_and(|place| posted.remove(place).is_some())
    }

    /// The receives that name this peer wait no longer; each is passed to `gone`.
    pub(crate) fn drop_receives(&mut self, source: PeerId, mut gone: impl FnMut(ReceiveId)) {
        for posted in self.posted.values_mut() {
            posted.retain(|(receive, pattern)| {
                let stays = pattern.source != Some(source);
                if !stays {
                    gone(*receive);
                }
                stays
            });
        }
    }

    /// No receive waits any longer; these did.
    pub(crate) fn drop_all_receives(&mut self) -> Vec<ReceiveId> {
        let posted = core::mem::take(&mut self.posted);
        posted.into_values().flatten().map(|(receive, _)| receive).collect()
    }
}
