//! Large messages: the sending and the receiving end.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use base::time::{Duration, Instant};

use super::bulk;
use super::bulk::{payload, payload_from};
use super::reads::Announced;
use super::requests::{Delivery, arrived};
use super::{Contents, Endpoint, Message};
use crate::buffers::{Sink, Source};
use crate::counters::DropReason;
use crate::ids::{PeerId, ReceiveId};
use crate::large::{Block, Job, Pull, Pulls, first_bits};
use crate::peer::{Expected, Peer};
use crate::status::RequestError;
use crate::wire::{self, BULK_PAYLOAD, Notify, REFUSED};

/// So many frames of later requests must come before a block is asked for again.
const LATER: u32 = 8;
/// A request of which nothing has come may have been overtaken by so many on its way; their frames
/// say nothing of it.
const OVERTAKEN_BY: u64 = 2;
/// At least so long a missing frame may be late after the last of its block.
const LATENESS: Duration = Duration::from_micros(100);

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// A peer has announced a large message. An error breaks the protocol.
    pub(super) fn announced(
        &mut self,
        now: Instant,
        id: PeerId,
        announced: Announced,
    ) -> Result<(), ()> {
        let Announced { match_info, total, region, head, reference } = announced;
        self.peers.get(id).filter(|peer| peer.may_begin(self.config.window)).ok_or(())?;
        if let Some(receive) = self.match_message(match_info, id) {
            self.start_pull(now, receive, id, announced);
        } else if self.closing {
            self.refuse(now, id, region);
        } else {
            let reference = reference.map(Box::new);
            let contents = Contents::Announced { region, head, reference };
            self.keep_message(Message { source: id, match_info, total, contents });
        }
        Ok(())
    }

    pub(super) fn start_pull(
        &mut self,
        now: Instant,
        receive: ReceiveId,
        id: PeerId,
        announced: Announced,
    ) {
        let Announced { match_info, total: length, region, head, reference } = announced;
        let Some(peer) = self.peers.get(id) else {
            let reason = self.peers.why_lost(id);
            let delivery = Delivery { match_info, length, transferred: 0 };
            return self.complete_receive(receive, Err(reason), Some(id), delivery);
        };
        let wanted = length.min(self.room_of(receive));
        let payload = payload_from(peer) as u32;
        if let Some(receiving) = self.receives.get_mut(receive) {
            // From now on the match information is the message's.
            receiving.match_info = match_info;
        }
        let pull = Pull {
            peer: id,
            region,
            receive,
            length,
            wanted,
            payload,
            offset: 0,
            index: 0,
            open: 0,
            received: 0,
            is_queued: true,
        };
        if wanted == 0 {
            return self.finish_pull(now, pull);
        }
        match reference {
            Some(reference) => self.begin_read(now, pull, reference, head),
            None => self.ask(now, pull),
        }
    }

    pub(super) fn ask(&mut self, now: Instant, pull: Pull) {
        self.pulls.insert(pull);
        self.ask_for_more(now);
    }

    pub(super) fn coming(&self) -> impl Iterator<Item = &Pull> {
        self.pulls.active.values().chain(self.reads.pulls())
    }

    /// Asks for blocks as long as the window of all pulls permits.
    pub(super) fn ask_for_more(&mut self, now: Instant) {
        while let Some((id, block)) = self.pulls.next_block(now, self.config.blocks) {
            if let Some(peer) = self.peers.get_mut(id) {
                peer.to_request.push_back(block);
            }
            self.wake(id);
        }
    }

    /// A request for this block is about to go out.
    pub(super) fn asking(&mut self, now: Instant, id: PeerId, mut block: Block) {
        self.pulls.requests += 1;
        (block.request, block.later) = (self.pulls.requests, 0);
        if let Some(peer) = self.peers.get_mut(id) {
            let timeout = peer.outbound.pto(&self.config).times(1 << block.tries.min(8));
            (block.since, block.is_late) = (now, false);
            block.timeout = timeout.min(self.config.longest_wait());
            if self.pulls.active.get(&block.pull).is_some_and(Pull::is_bulk) {
                block.timeout = block.timeout.max(bulk::REPEATED_AFTER);
            }
            peer.requested.push_back(block);
        }
    }

    /// The blocks that are overdue go back to the queue; whether there are any.
    pub(super) fn ask_again(&mut self, id: PeerId, is_overdue: impl Fn(&Block) -> bool) -> bool {
        let Some(peer) = self.peers.get_mut(id) else { return false };
        let mut any = false;
        let mut place = 0;
        while let Some(block) = peer.requested.get(place) {
            if !is_overdue(block) {
                place += 1;
                continue;
            }
            let mut block = *block;
            peer.requested.remove(place);
            block.tries += 1;
            // One who does not answer must not hold up the messages of others.
            self.pulls.in_flight -= core::mem::take(&mut block.counted);
            self.pulls.congestion.on_loss(block.request, self.pulls.requests + 1, 0);
            self.counters.asked_again += 1;
            peer.to_request.push_back(block);
            any = true;
        }
        any
    }

    /// Frames of a large message have come, from this one on, of so many bytes; the data of one,
    /// unless they are in place already. An error breaks the protocol.
    pub(super) fn replied(
        &mut self,
        now: Instant,
        id: PeerId,
        (name, index): (u32, u32),
        length: usize,
        data: Option<&[u8]>,
    ) -> Result<(), ()> {
        let known = self.pulls.active.get(&name).filter(|pull| pull.peer == id).copied();
        let (Some(pull), Some(peer)) = (known, self.peers.get_mut(id)) else {
            return self.useless(DropReason::Stale);
        };
        let Some((block, bit)) = find_block(peer, name, index) else {
            return self.useless(DropReason::Duplicate);
        };
        let payload = u64::from(pull.payload);
        let offset = block.offset + u64::from(bit) * payload;
        let most = if data.is_some() { 1 } else { block.count - bit };
        let count = (length as u64).div_ceil(payload).clamp(1, most.into());
        // The sender does not know how much of the message fits here.
        if length as u64 != (pull.length - offset).min(count * payload) {
            return Err(());
        }
        let wanted = (pull.wanted - offset).min(length as u64);
        let count = count as u32;
        let (request, first_answer) = (block.request, block.tries == 0);
        let frames = first_bits(count) << bit;
        if block.missing & frames != frames {
            return self.useless(DropReason::Duplicate);
        }
        block.missing &= !frames;
        let counted = count.min(block.counted);
        block.counted -= counted;
        self.pulls.in_flight -= counted;
        let is_complete = block.missing == 0;
        peer.watch.liveness.received(Expected::Reply, now);
        let pto = peer.outbound.pto(&self.config);
        let lateness = Duration::from_nanos(peer.outbound.rtt.smoothed().as_nanos() / 4);
        if let Some((block, _)) = find_block(peer, name, index) {
            block.since = now;
            block.is_late = block.missing >> bit == 0 && first_answer;
            block.timeout = match block.is_late {
                _ if pull.is_bulk() => pto.max(bulk::REPEATED_AFTER),
                true => lateness.max(LATENESS),
                false => pto,
            };
        }
        let asks_again =
            self.pulls.is_overtaken(peer, now, (request, count), lateness.max(LATENESS));
        if is_complete {
            remove_block(peer, name, index);
        }
        if let Some(data) = data {
            self.write(pull.receive, offset, &data[..wanted as usize]);
        }
        if let Some(pull) = self.pulls.on_reply(name, wanted, is_complete) {
            self.finish_pull(now, pull);
        }
        self.ask_for_more(now);
        if asks_again && self.ask_again(id, |block| block.later >= LATER) {
            self.wake(id);
            self.ask_for_more(now);
        }
        Ok(())
    }

    /// The place of a frame that is asked for and has not come, without its first bytes, and of
    /// those that follow it.
    pub(super) fn place_of(
        &mut self,
        id: PeerId,
        (name, index): (u32, u32),
        skip: usize,
        most: usize,
    ) -> Option<&mut [u8]> {
        let pull = self.pulls.active.get(&name).filter(|pull| pull.peer == id)?;
        let payload = u64::from(pull.payload);
        let (block, bit) = find_block(self.peers.get_mut(id)?, name, index)?;
        let offset = block.offset + u64::from(bit) * payload;
        let missing = u64::from((block.missing >> bit).trailing_ones());
        // A frame of which a part only is wanted has no place.
        let whole =
            if pull.wanted == pull.length { pull.wanted } else { pull.wanted / payload * payload };
        let end = (offset + missing * payload).min(whole);
        let offset = offset + skip as u64;
        let most = end.checked_sub(offset)?.min(most as u64) as usize;
        let piece = self.receives.get_mut(pull.receive)?.sink.piece(offset, most);
        (!piece.is_empty()).then_some(piece)
    }

    pub(super) fn finish_pull(&mut self, now: Instant, pull: Pull) {
        let Pull { peer: id, region, receive, length, wanted, .. } = pull;
        let match_info = self.match_info_of(receive);
        let delivery = Delivery { match_info, length, transferred: wanted };
        self.complete_receive(receive, delivery.result(), Some(id), delivery);
        if let Some(peer) = self.peers.get_mut(id) {
            peer.outbound.notifies.push_back(Notify { region, delivered: wanted });
            self.takes_room(id);
            self.act(now, id);
        }
    }

    /// A peer asks for frames of a message of ours.
    /// The last one is to be marked if it is `prompt`.
    pub(super) fn pulled(&mut self, id: PeerId, prompt: bool, asked: wire::Pull) {
        let known = self.regions.get(asked.region, id);
        let (Some(region), Some(peer)) = (known, self.peers.get_mut(id)) else {
            return self.counters.drop(DropReason::Stale);
        };
        let total = self.sends.get(region.send).map_or(0, |sending| sending.total);
        let is_possible = [payload(peer), BULK_PAYLOAD].contains(&asked.payload.into());
        let left = if is_possible { total.saturating_sub(asked.offset) } else { 0 };
        let frames = left.div_ceil(u64::from(asked.payload).max(1)).min(32) as u32;
        let wanted = asked.wanted & first_bits(frames);
        if wanted == 0 {
            return self.counters.drop(DropReason::Stale);
        }
        let wire::Pull { region, pull, offset, first, payload, .. } = asked;
        let job = Job { peer: id, region, pull, offset, first, wanted, payload, prompt, sent: 0 };
        if let Some(job) = peer.find_job(&job) {
            job.wanted |= wanted;
            job.prompt |= prompt;
        } else if !self.push_job(job) {
            self.counters.drop(DropReason::NoMemory);
        }
    }

    pub(super) fn notified(&mut self, id: PeerId, notify: Notify) {
        let known = self.regions.get(notify.region, id);
        let (Some(region), Some(peer)) = (known, self.peers.get_mut(id)) else {
            return self.counters.drop(DropReason::Stale);
        };
        peer.announced = peer.announced.saturating_sub(1);
        self.regions.announced.remove(&notify.region);
        let Some(sending) = self.sends.get_mut(region.send) else { return };
        let (length, delivered) = (sending.total, notify.delivered.min(sending.total));
        let (result, delivered) = match notify.delivered {
            REFUSED => (Err(RequestError::Closed), 0),
            _ => (arrived(length, delivered), delivered),
        };
        let is_acked = sending.unacked == 0;
        self.complete_send(region.send, result, delivered);
        if is_acked {
            self.sends.remove(region.send);
        }
    }

    /// Nothing of this peer's will come any more, and nothing of ours is wanted.
    pub(super) fn end_transfers(&mut self, id: PeerId, reason: RequestError) {
        let regions = self.regions.announced.values().filter(|region| region.peer == id);
        let sends: Vec<_> = regions.map(|region| region.send).collect();
        self.regions.forget(id);
        self.drop_jobs(id);
        for send in sends {
            self.complete_send(send, Err(reason), 0);
            self.sends.remove(send);
        }
        let pulls: Vec<_> = self.coming().filter(|pull| pull.peer == id).copied().collect();
        self.pulls.active.retain(|_, pull| pull.peer != id);
        self.reads.forget(id);
        for pull in pulls {
            let Pull { receive, length, received: transferred, .. } = pull;
            let match_info = self.match_info_of(receive);
            let delivery = Delivery { match_info, length, transferred };
            self.complete_receive(receive, Err(reason), Some(id), delivery);
        }
        if let Some(peer) = self.peers.get_mut(id) {
            let counted = |blocks: &VecDeque<Block>| -> u32 {
                blocks.iter().map(|block| block.counted).sum()
            };
            self.pulls.in_flight -= counted(&peer.requested) + counted(&peer.to_request);
            peer.requested.clear();
            peer.to_request.clear();
            peer.announced = 0;
        }
    }
}

/// The block that this frame belongs to, asked for or about to be, and which of its frames it is.
fn find_block(peer: &mut Peer, pull: u32, index: u32) -> Option<(&mut Block, u32)> {
    let blocks = peer.requested.iter_mut().chain(&mut peer.to_request);
    blocks.filter_map(|block| block.bit(pull, index).map(|bit| (block, bit))).next()
}

fn remove_block(peer: &mut Peer, pull: u32, index: u32) {
    for blocks in [&mut peer.requested, &mut peer.to_request] {
        if let Some(place) = blocks.iter().position(|block| block.bit(pull, index).is_some()) {
            blocks.remove(place);
            return;
        }
    }
}

impl Pulls {
    /// Counts that so many answers to this request have come: whether they show that frames of an
    /// earlier one are lost. If that may be on its way still, it is late soon after the last of
    /// them.
    fn is_overtaken(
        &self,
        peer: &mut Peer,
        now: Instant,
        (request, answers): (u64, u32),
        lateness: Duration,
    ) -> bool {
        let earliest = peer.requested.front_mut().filter(|block| block.request < request);
        let Some(earliest) = earliest else { return false };
        if earliest.is_unanswered() && request - earliest.request <= OVERTAKEN_BY {
            if !self.active.get(&earliest.pull).is_some_and(Pull::is_bulk) {
                (earliest.since, earliest.is_late, earliest.timeout) = (now, true, lateness);
            }
            return false;
        }
        earliest.later += answers;
        earliest.later >= LATER
    }
}
