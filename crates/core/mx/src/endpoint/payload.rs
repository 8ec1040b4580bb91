//! How much of a message a frame carries, and which frames are bulk frames.

use crate::config::Config;
use crate::outgoing::BulkPath;
use crate::peer::Peer;
use crate::wire::{self, BULK_PAYLOAD, FrameType};

/// Bytes of a large message that a frame to or from this peer carries.
pub(super) fn payload(peer: &Peer) -> usize {
    peer.mtu - wire::overhead(FrameType::Reply, peer.crc)
}

/// Bytes of an eager message that a frame to this peer carries.
pub(super) fn medium_payload(peer: &Peer) -> usize {
    peer.mtu - wire::overhead(FrameType::Medium, peer.crc)
}

/// Bytes of a large message that a frame from this peer carries, if there is a path for it.
pub(super) fn payload_from(peer: &Peer) -> usize {
    if peer.bulk.path == BulkPath::Closed { payload(peer) } else { BULK_PAYLOAD }
}

pub(super) fn is_bulk_wanted(config: &Config, peer: &Peer, left: u64) -> bool {
    let min = peer.bulk.min.unwrap_or(config.bulk_min);
    let least = u64::from(min).max(medium_payload(peer) as u64);
    peer.bulk.path != BulkPath::Closed && left > least
}
