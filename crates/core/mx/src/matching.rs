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
use crate::ids::{MessageId, PeerId, ReceiveId};
pub use crate::pattern::Match;
use crate::pattern::Pattern;
use crate::waiting::{Waiting, WaitingMessages};

/// Receives that wait for messages, and messages that wait for receives.
#[derive(Debug)]
pub(crate) struct Matching {
    bits: ContextBits,
    posted: BTreeMap<u16, VecDeque<(ReceiveId, Pattern)>>,
    /// The messages of all contexts. A mask covers the context, so those of others never fit.
    waiting: WaitingMessages,
}

impl Matching {
    pub(crate) fn new(bits: ContextBits) -> Self {
        let (posted, waiting) = (BTreeMap::new(), WaitingMessages::default());
        Self { bits, posted, waiting }
    }

    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.len() as u32
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

    pub(crate) fn keep(&mut self, message: MessageId, match_info: u64, source: PeerId) {
        self.waiting.push(Waiting { message, match_info, source });
    }

    /// The first message that fits, which goes on waiting.
    pub(crate) fn find(&mut self, pattern: &Pattern, compared: &mut u64) -> Option<MessageId> {
        self.waiting.find(pattern, compared)
    }

    /// The first message that fits; it waits no longer.
    pub(crate) fn take(&mut self, pattern: &Pattern, compared: &mut u64) -> Option<MessageId> {
        self.waiting.take(pattern, compared)
    }

    /// A receive waits no longer; false if it did not.
    pub(crate) fn withdraw(&mut self, receive: ReceiveId, match_info: u64) -> bool {
        let Some(posted) = self.posted.get_mut(&self.bits.of(match_info)) else { return false };
        let place = posted.iter().position(|(waiting, _)| *waiting == receive);
        place.is_some_and(|place| posted.remove(place).is_some())
    }

    /// No message of this peer waits any longer that `gone` says so of.
    pub(crate) fn drop_messages(
        &mut self,
        source: PeerId,
        compared: &mut u64,
        gone: impl FnMut(MessageId) -> bool,
    ) {
        self.waiting.remove_from(source, compared, gone);
    }

    pub(crate) fn drop_all_messages(&mut self) {
        self.waiting = WaitingMessages::default();
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
