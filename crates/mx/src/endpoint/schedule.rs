//! The queues and timers of an endpoint.

use alloc::collections::{BTreeSet, VecDeque};

use base::time::Instant;

use crate::address::Address;
use crate::ids::PeerId;
use crate::wire::{ConnectStatus, Header, NackReason};

/// More frames to endpoints that are no peers are not kept.
const MAX_STRAYS: usize = 64;

/// Of so many turns one is for answers to pull requests, whoever else waits.
const TURNS: u8 = 4;

/// A frame to an endpoint that is no peer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stray {
    Answer { to: Address, token: u32, status: ConnectStatus },
    Nack { to: Address, token: u32, reason: NackReason },
    LastAck { to: Address, header: Header },
}

/// Queues and timers. All of it may name peers that are gone.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Peers to which there may be something to send.
    pub(super) ready: VecDeque<PeerId>,
    pub(super) strays: VecDeque<Stray>,
    /// How many turns of peers are left before the next answer to a pull request.
    turns_left: u8,
    timers: BTreeSet<(Instant, PeerId)>,
}

impl Schedule {
    /// Queues a frame to an endpoint that is no peer; false if there are too many.
    pub(super) fn push_stray(&mut self, stray: Stray) -> bool {
        let has_room = self.strays.len() < MAX_STRAYS;
        if has_room {
            self.strays.push_back(stray);
        }
        has_room
    }

    /// Whether it is the turn of answers to pull requests.
    pub(super) fn is_turn_of_replies(&self) -> bool {
        self.turns_left == 0 || self.ready.is_empty()
    }

    /// An answer to a pull request has its turn.
    pub(super) const fn reply_taken(&mut self) {
        self.turns_left = TURNS - 1;
    }

    /// A peer has had its turn.
    pub(super) const fn peer_taken(&mut self) {
        self.turns_left = self.turns_left.saturating_sub(1);
    }

    /// When the first timer is set.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The first peer whose timer is due; the timer is no longer set.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<PeerId> {
        let (at, id) = *self.timers.first()?;
        (at <= now).then(|| {
            self.timers.pop_first();
            id
        })
    }

    /// Sets the timer of a peer, and removes the one that it had.
    pub(super) fn set_timer(&mut self, id: PeerId, before: Option<Instant>, at: Option<Instant>) {
        if let Some(before) = before {
            self.timers.remove(&(before, id));
        }
        if let Some(at) = at {
            self.timers.insert((at, id));
        }
    }
}
