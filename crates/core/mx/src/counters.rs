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
        /// It asks to connect, and has to ask again: there are too many peers, or too many of its
        /// host.
        TooManyPeers => "too-many-peers",
    }
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $field:ident $name:literal,)+) => {
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
            $($(#[doc = $doc])+ pub $field: u64,)+
        }

        impl Counters {
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
                $(visit("", $name, self.$field);)+
            }

            pub(crate) fn drop(&mut self, reason: DropReason) {
                self.dropped[reason as usize] += 1;
            }
        }
    };
}

counters! {
    /// Frames sent that were marked.
    marked "marked",
    /// Numbered frames that were sent again.
    resent "resent",
    /// Those of them that had only been late.
    resent_needlessly "resent-needlessly",
    /// Probe timeouts (PTO, RFC 9002 section 6.2): nothing was heard while something was under way.
    probe_timeouts "probe-timeouts",
    /// Blocks that were asked for again.
    asked_again "asked-again",
    /// Messages sent, of every kind.
    messages_sent "messages-sent",
    /// Messages received, of every kind.
    messages_received "messages-received",
    /// Messages that arrived before a receive was posted.
    unexpected "unexpected",
    /// Messages and receives that wait and were looked at, to find those that belong together or
    /// to a peer that was lost: the work of matching.
    compared "compared",
    /// Eager messages that were announced instead, since the peer permitted no more bytes.
    without_credit "without-credit",
    /// Peers that were lost.
    peers_lost "peers-lost",
    /// Messages of lost peers that no receive had taken and that were dropped: there were too many.
    orphans_dropped "orphans-dropped",
}
