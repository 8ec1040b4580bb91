//! Which frames are marked: those that a host waits for, and of a burst of them the last.
//!
//! A mark makes the receiver's NIC interrupt, and an interrupt shows the host everything that has
//! come. So when two frames that hosts wait for leave one right after the other to the same peer,
//! the mark of the second is enough: that of the first would interrupt a host that has nothing to
//! do yet but to wait for the second. TCP does the same with PSH.
//!
//! The choice is made when a frame is written and cannot be taken back, so a frame goes without its
//! mark only if another one is certain to follow: the queue, the window and the credit permit it
//! now. The owner transmits until there are no more frames ([contract](super)), so it leaves in the
//! same batch. Two things can come between: the port is full for a while, and a frame arrives in
//! this time that closes the window. Then the burst has no end yet, and when nothing else can end
//! it an acknowledgement does. Once [`Endpoint::transmit`] returns `None`, every burst has ended.
//! What waits while the port is full waits for the port: a mark could not leave either.
//!
//! A burst has an end all the same, after [`BURST`] frames, and the next mark must be [`NEAR`]: a
//! short message does not wait until a long one behind it is complete.
//!
//! Frames that were lost are marked as if nothing followed, since the host has waited long enough.
//! So are replies, whose receiver says which of them are waited for.
//!
//! Where a burst ends does not depend on which types of frames are marked ([`Config::marks`]), so
//! marks change nothing else on the wire: the last frame bears the marks of those before it.

use super::bulk::{is_bulk_wanted, medium_payload};
use super::{Endpoint, Sending};
use crate::buffers::{Sink, Source};
use crate::config::{Config, Marks};
use crate::ids::PeerId;
use crate::peer::{Item, Peer};
use crate::wire::FrameType;

/// A mark is at most so many frames late, those for other peers included: as many as one pull
/// request may ask for, which share a mark as well.
const BURST: u32 = 32;

/// The next mark to the same peer is so many frames away at most. The mark that is spared is worth
/// an interrupt, which costs a host about as much as these frames.
const NEAR: u32 = 4;

/// A message, or an answer to a pull request, is not marked half way if it has fewer frames: the
/// host could do too little by then.
const LEAST_FRAMES: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    No,
    /// Yes; as well for the next, if it follows at once.
    WithNext,
    Now,
}

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// Whether to mark a frame of this type to this peer, which is about to be written. What was
    /// queued no longer contains it.
    pub(super) fn decide_mark(
        &mut self,
        id: PeerId,
        frame_type: FrameType,
        waited: Waited,
    ) -> bool {
        let is_wanted = self.config.marks.has(frame_type);
        let distance = match waited {
            Waited::No => return false,
            Waited::WithNext => self.distance_to_next(id),
            Waited::Now => None,
        };
        let Some(peer) = self.peers.get_mut(id) else { return is_wanted };
        match distance.map(|distance| peer.burst + distance).filter(|length| *length <= BURST) {
            Some(length) => {
                peer.burst = length;
                peer.mark_owed |= is_wanted;
                false
            }
            None => self.end_burst(id) || is_wanted,
        }
    }

    /// A frame ends the burst to this peer, if there is one; whether it has to bear a mark.
    pub(super) fn end_burst(&mut self, id: PeerId) -> bool {
        let Some(peer) = self.peers.get_mut(id) else { return false };
        peer.burst = 0;
        core::mem::take(&mut peer.mark_owed)
    }

    /// How many frames will leave until the next one to this peer that a host waits for, with those
    /// to other peers between them; `None` if it is not certain to leave in this batch.
    fn distance_to_next(&self, id: PeerId) -> Option<u32> {
        let peer = self.peers.get(id)?;
        let frames = self.frames_to_next(peer).filter(|frames| *frames <= NEAR)?;
        // Peers take turns, a frame each.
        let turns = 1 + self.schedule.ready.len() as u32;
        frames.checked_mul(turns)
    }

    fn frames_to_next(&self, peer: &Peer) -> Option<u32> {
        let requests = peer.to_request.len() as u32;
        if requests > 0 {
            // The last of them.
            return Some(requests);
        }
        let outbound = &peer.outbound;
        let frames = if outbound.notifies.is_empty() {
            let Item::Message(send) = *outbound.queue.front()? else { return None };
            self.frames_of_message(peer, self.sends.get(send)?)?
        } else {
            1
        };
        Some(frames).filter(|frames| *frames <= outbound.room())
    }

    /// How many frames the message at the head of the queue has left, up to the one that is marked.
    fn frames_of_message(&self, peer: &Peer, sending: &Sending<S>) -> Option<u32> {
        if !peer.outbound.may_begin() {
            return None;
        }
        if next_frame(&self.config, peer, sending) != FrameType::Medium {
            return Some(1);
        }
        let left = sending.total as u32 - sending.begun;
        if is_bulk_wanted(&self.config, peer, left.into()) {
            // Its mark is not seen.
            return None;
        }
        let frames = left.div_ceil(medium_payload(peer) as u32);
        // Its mark may have gone out already.
        frames.checked_sub(self.config.mark_early.into()).filter(|frames| *frames > 0)
    }
}

/// Whether a message is eager, if its receiver permits so much.
pub(super) fn is_short<S>(config: &Config, sending: &Sending<S>) -> bool {
    !sending.synchronous && sending.total <= config.eager_max.into()
}

pub(super) fn next_frame<S>(config: &Config, peer: &Peer, sending: &Sending<S>) -> FrameType {
    let has_credit = sending.total <= peer.outbound.credit().into();
    let is_eager = peer.outbound.has_begun || is_short(config, sending) && has_credit;
    if !is_eager {
        FrameType::Rendezvous
    } else if sending.total <= config.small_max.into() {
        FrameType::Small
    } else {
        FrameType::Medium
    }
}

/// Whether to mark a frame since it is half way, `before` frames after the first and `after` frames
/// before the last: so the host begins with the first half while the second is on the wire.
pub(super) const fn is_half_way(marks: Marks, before: u32, after: u32) -> bool {
    let frames = before + 1 + after;
    marks.marks_half_way() && frames >= LEAST_FRAMES && after == frames / 2
}
