//! The queues and timers of an endpoint.

use alloc::collections::{BTreeSet, VecDeque};

use base::time::Instant;

use crate::address::Address;
use crate::ids::PeerId;
use crate::wire::{ConnectStatus, Header, NackReason};

/// A frame to an endpoint that is no peer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stray {
    Answer { to: Address, token: u32, status: ConnectStatus },
    Nack { to: Address, token: u32, reason: NackReason },
    LastAck { to: Address, header: Header },
}

/// What to send, and when to act.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Peers to which there may be something to send. Some may be lost.
    pub(super) ready: VecDeque<PeerId>,
    pub(super) strays: VecDeque<Stray>,
    /// Peers that have asked for frames of large messages, the next one first.
    pub(super) replying: VecDeque<PeerId>,
    /// How many turns of peers are left before the next answer to a pull request.
    pub(super) turns_left: u8,
    pub(super) timers: BTreeSet<(Instant, PeerId)>,
    /// The peer whose timer is not set as it has to be, and when that changed.
    pub(super) changed: Option<(Instant, PeerId)>,
}
