//! What an endpoint counts. Counters run freely and are never reset.

use crate::wire::FrameType;

named! {
    /// Why a frame was of no use.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DropReason {
        /// It is no frame of this protocol, or its checksum is wrong.
        Malformed => "malformed",
        /// It has no checksum, although the peers agreed on one, or it would change a connection.
        NoChecksum => "no-checksum",
        /// It is for another endpoint.
        NotForUs => "not-for-us",
        /// It comes from an endpoint that is not a peer, or not any more.
        Stranger => "stranger",
        /// Its token is not the one that the peer was given.
        BadToken => "bad-token",
        /// It has come before.
        Duplicate => "duplicate",
        /// It is beyond what was permitted, in number or in bytes.
        BeyondWindow => "beyond-window",
        /// It came early, and there is no memory to keep it.
        NoMemory => "no-memory",
        /// It acknowledges what was never sent, or names what is not there.
        Stale => "stale",
        /// The answer to a stranger had to be left out: there were too many.
        TooManyStrays => "too-many-strays",
        /// It asks to connect, and has to ask again: there are too many peers, or too many of its host.
        TooManyPeers => "too-many-peers",
    }
}

/// What an endpoint has counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Frames sent, by type, in the order of [`FrameType::ALL`].
    pub sent: [u64; FrameType::ALL.len()],
    /// Frames received that belonged to a peer, by type.
    pub received: [u64; FrameType::ALL.len()],
    /// Frames of no use, by reason, in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Frames sent that were marked.
    pub marked: u64,
    /// Numbered frames that were sent again.
    pub resent: u64,
    /// Those of them that had only been late.
    pub resent_needlessly: u64,
    /// Probe timeouts (PTO, RFC 9002 section 6.2): nothing was heard while something was under way.
    pub probe_timeouts: u64,
    /// Blocks that were asked for again.
    pub asked_again: u64,
    /// Messages sent, of every kind.
    pub messages_sent: u64,
    /// Messages received, of every kind.
    pub messages_received: u64,
    /// Messages that arrived before a receive was posted.
    pub unexpected: u64,
    /// Messages and receives that wait and were looked at, to find those that belong together or
    /// to a peer that was lost: the work of matching.
    pub compared: u64,
    /// Eager messages that were announced instead, since the peer permitted no more bytes.
    pub without_credit: u64,
    /// Peers that were lost.
    pub peers_lost: u64,
    /// Messages of lost peers that no receive had taken and that were dropped: there were too many.
    pub orphans_dropped: u64,
}

impl Counters {
    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }

    /// Every counter with its name, such as `sent-small`.
    pub fn each(&self, mut visit: impl FnMut(&str, &str, u64)) {
        for (group, values) in [("sent", &self.sent), ("received", &self.received)] {
            for (frame, count) in FrameType::ALL.into_iter().zip(values) {
                visit(group, frame.name(), *count);
            }
        }
        for (reason, count) in DropReason::ALL.into_iter().zip(&self.dropped) {
            visit("dropped", reason.name(), *count);
        }
        let others = [
            ("marked", self.marked),
            ("resent", self.resent),
            ("resent-needlessly", self.resent_needlessly),
            ("probe-timeouts", self.probe_timeouts),
            ("asked-again", self.asked_again),
            ("messages-sent", self.messages_sent),
            ("messages-received", self.messages_received),
            ("unexpected", self.unexpected),
            ("compared", self.compared),
            ("without-credit", self.without_credit),
            ("peers-lost", self.peers_lost),
            ("orphans-dropped", self.orphans_dropped),
        ];
        for (name, count) in others {
            visit("", name, count);
        }
    }
}
