//! Which receive a message belongs to.
//!
//! A posted receive takes a message if the message comes from the peer that it names, or from
//! anybody if it names none, and if the match information agrees in all bits of the mask. Receives
//! are tried in the order in which they were posted, waiting messages in the order in which they
//! arrived, and the first that fits is taken (MX API, `mx_irecv`). Messages of one peer arrive in
//! the order in which they were sent, so two that fit the same receives are received in order.

use alloc::collections::{BTreeMap, VecDeque};

use crate::config::ContextBits;
use crate::ids::{MessageId, PeerId, ReceiveId};

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
    /// Any message.
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

/// What a receive asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) source: Option<PeerId>,
    pub(crate) wanted: Match,
}

impl Pattern {
    fn fits(&self, match_info: u64, source: PeerId) -> bool {
        self.wanted.accepts(match_info) && self.source.is_none_or(|wanted| wanted == source)
    }
}

/// A message that no receive has taken.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    message: MessageId,
    match_info: u64,
    source: PeerId,
}

/// The queues of one context.
#[derive(Debug, Default)]
struct Queues {
    posted: VecDeque<(ReceiveId, Pattern)>,
    waiting: VecDeque<Waiting>,
}

/// Receives that wait for messages, and messages that wait for receives.
#[derive(Debug)]
pub(crate) struct Matching {
    bits: ContextBits,
    contexts: BTreeMap<u16, Queues>,
    waiting: u32,
}

impl Matching {
    pub(crate) fn new(bits: ContextBits) -> Self {
        Self { bits, contexts: BTreeMap::new(), waiting: 0 }
    }

    /// Messages that wait.
    pub(crate) const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Receives that wait.
    pub(crate) fn posted(&self) -> usize {
        self.contexts.values().map(|queues| queues.posted.len()).sum()
    }

    /// A receive waits from now on.
    pub(crate) fn post(&mut self, receive: ReceiveId, pattern: Pattern) {
        self.queues(pattern.wanted.info).posted.push_back((receive, pattern));
    }

    /// The receive that a message belongs to; it waits no longer.
    pub(crate) fn match_message(&mut self, match_info: u64, source: PeerId) -> Option<ReceiveId> {
        let posted = &mut self.queues(match_info).posted;
        let place = posted.iter().position(|(_, pattern)| pattern.fits(match_info, source))?;
        posted.remove(place).map(|(receive, _)| receive)
    }

    /// A message waits from now on.
    pub(crate) fn keep(&mut self, message: MessageId, match_info: u64, source: PeerId) {
        self.waiting += 1;
        self.queues(match_info).waiting.push_back(Waiting { message, match_info, source });
    }

    /// The first message that fits, which goes on waiting.
    pub(crate) fn find(&self, pattern: &Pattern) -> Option<MessageId> {
        let queues = self.contexts.get(&self.bits.of(pattern.wanted.info))?;
        let fits = |message: &&Waiting| pattern.fits(message.match_info, message.source);
        queues.waiting.iter().find(fits).map(|waiting| waiting.message)
    }

    /// The first message that fits; it waits no longer.
    pub(crate) fn take(&mut self, pattern: &Pattern) -> Option<MessageId> {
        let waiting = &mut self.contexts.get_mut(&self.bits.of(pattern.wanted.info))?.waiting;
        let fits = |message: &Waiting| pattern.fits(message.match_info, message.source);
        let place = waiting.iter().position(fits)?;
        self.waiting -= 1;
        waiting.remove(place).map(|waiting| waiting.message)
    }

    /// A receive waits no longer; false if it did not.
    pub(crate) fn withdraw(&mut self, receive: ReceiveId, match_info: u64) -> bool {
        let posted = &mut self.queues(match_info).posted;
        let place = posted.iter().position(|(waiting, _)| *waiting == receive);
        place.is_some_and(|place| posted.remove(place).is_some())
    }

    /// No message of this peer waits any longer that `gone` says so of.
    pub(crate) fn drop_messages(
        &mut self,
        source: PeerId,
        mut gone: impl FnMut(MessageId) -> bool,
    ) {
        for queues in self.contexts.values_mut() {
            let before = queues.waiting.len();
            queues.waiting.retain(|waiting| waiting.source != source || !gone(waiting.message));
            self.waiting -= (before - queues.waiting.len()) as u32;
        }
    }

    /// The receives that name this peer wait no longer; each is passed to `gone`.
    pub(crate) fn drop_receives(&mut self, source: PeerId, mut gone: impl FnMut(ReceiveId)) {
        for queues in self.contexts.values_mut() {
            queues.posted.retain(|(receive, pattern)| {
                let stays = pattern.source != Some(source);
                if !stays {
                    gone(*receive);
                }
                stays
            });
        }
    }

    fn queues(&mut self, match_info: u64) -> &mut Queues {
        self.contexts.entry(self.bits.of(match_info)).or_default()
    }
}
