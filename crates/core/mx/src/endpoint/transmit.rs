//! Frames on their way out.
//!
//! Peers take turns, a frame each. What a peer gets first is what keeps it going: requests for more
//! of a large message, then a list of what it has sent in vain, then numbered frames, lost ones
//! before new ones, then an acknowledgement, if none of these frames took it along. Answers to pull
//! requests are the bulk of all bytes; they get every fourth turn, and all turns that no other
//! wants, so that small messages overtake them.

use base::time::Instant;

use super::bulk::{is_bulk_wanted, medium_payload};
use super::marks::{Waited, is_half_way, is_short, next_frame};
use super::timers::{Schedule, Stray};
use super::{Endpoint, Sending};
use crate::address::Address;
use crate::buffers::{Sink, Source};
use crate::ids::{PeerId, SendId};
use crate::large::{Block, Job, Region};
use crate::outgoing::{BulkPath, Outgoing};
use crate::peer::{ConnectionState, Item, Resent, Segment};
use crate::seq::Seq;
use crate::wire::{
    self, BITMAP, BULK_EAGER, Body, Connect, ConnectStatus, FrameType, Header, Nack, Pull, VERSION,
};

/// Of so many turns one is for answers to pull requests, whatever else waits.
const TURNS: u8 = 4;

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// Whether [`transmit`](Self::transmit) has nothing to write now, at less cost.
    /// `false` if it may have something.
    pub fn is_quiet(&self, now: Instant) -> bool {
        let Schedule { ready, strays, replying, .. } = &self.schedule;
        let is_quiet = |id: &PeerId| self.peers.get(*id).is_none_or(|peer| peer.is_quiet(now));
        let has_others = !strays.is_empty() || !replying.is_empty();
        !has_others && ready.len() < 3 && ready.iter().all(is_quiet)
    }

    /// Whether a message will be announced that would be eager, had its receiver permitted so much:
    /// frames that have come, and were not handled, may say that it has. A short look tells, so
    /// that `false` may be wrong.
    pub fn lacks_credit(&self) -> bool {
        let lacks = |id: &PeerId| {
            let peer = self.peers.get(*id)?;
            if peer.outbound.credit() >= self.config.eager_max {
                return None;
            }
            let Some(Item::Message(send)) = peer.outbound.queue.front() else { return None };
            let sending = self.sends.get(*send)?;
            let is_announced = next_frame(&self.config, peer, sending) == FrameType::Rendezvous;
            Some(is_announced && is_short(&self.config, sending))
        };
        self.schedule.ready.iter().take(3).any(|id| lacks(id) == Some(true))
    }

    /// Writes the next frame, from what follows the EtherType on, to `out`, which holds at least
    /// [`Config::mtu`](crate::config::Config::mtu) bytes, or [`BULK_FRAME`](wire::BULK_FRAME) if
    /// there is a bulk path. None if there is nothing to send now.
    ///
    /// Of a frame that is longer than [`MAX_MTU`](crate::config::MAX_MTU) the last bytes may not be
    /// written to `out`, but be those of [`data`](Self::data); then it may be a run
    /// ([`wire::Run`]).
    ///
    /// # Panics
    /// If `out` is shorter than that.
    pub fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<Outgoing> {
        assert!(out.len() >= usize::from(self.config.mtu), "no room for a frame of the MTU");
        self.data = None;
        loop {
            if let Some(stray) = self.schedule.strays.pop_front() {
                return Some(self.write_stray(stray, out));
            }
            if !self.schedule.replying.is_empty()
                && (self.schedule.turns_left == 0 || self.schedule.ready.is_empty())
            {
                self.schedule.turns_left = TURNS - 1;
                if let Some(outgoing) = self.write_reply(out) {
                    return Some(outgoing);
                }
                continue;
            }
            let id = self.schedule.ready.pop_front()?;
            if let Some(peer) = self.peers.get_mut(id) {
                peer.is_ready = false;
            }
            if let Some(outgoing) = self.write_to(now, id, out) {
                self.schedule.turns_left = self.schedule.turns_left.saturating_sub(1);
                if self.peers.get(id).is_some_and(|peer| !peer.is_quiet(now)) {
                    self.wake(id);
                }
                self.timer_changed(now, id);
                return Some(outgoing);
            }
        }
    }

    fn write_to(&mut self, now: Instant, id: PeerId, out: &mut [u8]) -> Option<Outgoing> {
        let peer = self.peers.get_mut(id)?;
        if let Some(left) = peer.due.connects.checked_sub(1) {
            peer.due.connects = left;
            return self.write_connect(id, ConnectStatus::Request, 0, out);
        }
        if let Some(token) = peer.due.answer.take() {
            return self.write_connect(id, ConnectStatus::Accepted, token, out);
        }
        if peer.link == ConnectionState::Answered && peer.due.take_probe() {
            return self.write_control(id, &Body::Probe, out);
        }
        if !peer.is_reachable() {
            return None;
        }
        if let Some(block) = peer.to_request.pop_front() {
            return self.write_pull(now, id, block, out);
        }
        if peer.inbound.is_urgent() {
            return self.write_ack(id, false, out);
        }
        if peer.outbound.may_resend(peer.bulk.path == BulkPath::Open)
            && let Some((seq, segment, resent)) = peer.outbound.resend(now, &self.config)
        {
            self.counters.resent += 1;
            return self.write_segment(id, seq, segment, Some(resent), out);
        }
        if peer.outbound.may_send()
            && let Some(segment) = self.next_segment(id)
        {
            let peer = self.peers.get_mut(id)?;
            let seq = peer.outbound.send(now, segment, &self.config);
            return self.write_segment(id, seq, segment, None, out);
        }
        let peer = self.peers.get_mut(id)?;
        if peer.burst > 0 || peer.inbound.is_due(now) {
            let marked = self.end_burst(id);
            return self.write_ack(id, marked, out);
        }
        if peer.due.take_probe() {
            return self.write_control(id, &Body::Probe, out);
        }
        None
    }

    fn next_segment(&mut self, id: PeerId) -> Option<Segment> {
        let peer = self.peers.get_mut(id)?;
        if let Some(notify) = peer.outbound.notifies.pop_front() {
            return Some(Segment::Notify(notify));
        }
        let peer = self.peers.get(id)?;
        match *peer.outbound.queue.front()? {
            Item::Message(send) => self.next_of_message(id, send),
            // An endpoint that closes waits until its messages have been fetched, and those that
            // have begun to come are there.
            Item::Close
                if peer.announced > 0
                    || peer.arriving.is_some()
                    || self.coming().any(|pull| pull.peer == id) =>
            {
                None
            }
            Item::Close => {
                self.peers.get_mut(id)?.outbound.queue.pop_front();
                Some(Segment::Close)
            }
        }
    }

    fn next_of_message(&mut self, id: PeerId, send: SendId) -> Option<Segment> {
        let peer = self.peers.get_mut(id)?;
        if !peer.outbound.may_begin() {
            return None;
        }
        let sending = self.sends.get_mut(send)?;
        let frame_type = next_frame(&self.config, peer, sending);
        let left = sending.total - u64::from(sending.begun);
        let bulk = frame_type == FrameType::Medium && is_bulk_wanted(&self.config, peer, left);
        if bulk && peer.bulk.path != BulkPath::Open {
            return None;
        }
        sending.unacked += 1;
        let outbound = &mut peer.outbound;
        if frame_type == FrameType::Rendezvous {
            let is_short = is_short(&self.config, sending);
            self.counters.without_credit += u64::from(is_short);
            outbound.queue.pop_front();
            sending.is_out = true;
            peer.announced += 1;
            let region = self.regions.insert(Region { send, peer: id });
            return Some(Segment::Announce { send, region });
        }
        // What is not announced is at most 1 MiB.
        let total = sending.total as u32;
        if !outbound.has_begun {
            outbound.use_credit(total);
        }
        let segment = if frame_type == FrameType::Small {
            sending.begun = total;
            Segment::Small(send)
        } else {
            let payload = if bulk { BULK_EAGER } else { medium_payload(peer) };
            let offset = sending.begun;
            let length = (total - offset).min(payload as u32);
            sending.begun += length;
            Segment::Medium { send, offset, length: length as u16, bulk }
        };
        sending.is_out = sending.begun == total;
        let outbound = &mut peer.outbound;
        outbound.has_begun = !sending.is_out;
        if sending.is_out {
            outbound.queue.pop_front();
            self.eager_left(send);
        }
        Some(segment)
    }

    /// Writes a numbered frame, which may have been sent before.
    fn write_segment(
        &mut self,
        id: PeerId,
        seq: Seq,
        segment: Segment,
        resent: Option<Resent>,
        out: &mut [u8],
    ) -> Option<Outgoing> {
        let is_last_lost = resent == Some(Resent::Last);
        let ask = is_last_lost || !self.peers.get(id)?.outbound.may_send();
        let header = Header { seq, ask, ..self.header(id, false)? };
        // A frame that was lost is what the host waits for.
        let waited = if resent.is_some() { Waited::Now } else { Waited::WithNext };
        let (send, offset, length) = match segment {
            Segment::Small(send) => (send, 0, None),
            Segment::Medium { send, offset, length, .. } => (send, offset, Some(length)),
            Segment::Announce { send, region } => {
                return self.write_announcement(id, header, send, region, waited, out);
            }
            Segment::Notify(notify) => {
                return self.write_marked(id, header, &Body::Notify(notify), waited, out);
            }
            Segment::Close => {
                return self.write_marked(id, header, &Body::Close, Waited::No, out);
            }
        };
        let Sending { match_info, total, .. } = self.sends.get(send)?;
        let (match_info, total) = (*match_info, *total as u32);
        let length = length.map_or(total, u32::from);
        let body = match segment {
            Segment::Small(_) => Body::Small(match_info, &[]),
            _ => Body::Medium { match_info, total, offset, data: &[] },
        };
        // All frames but the last are of one length.
        let after = (total - offset - length).div_ceil(length.max(1));
        let early = u32::from(self.config.mark_early);
        let completes = after == early || (after < early && offset == 0);
        let waited = if segment.is_bulk() {
            // NICs see no marks on its path, and the frames before it have had theirs.
            Waited::No
        } else if completes || is_last_lost {
            waited
        } else if is_half_way(self.config.marks, offset / length.max(1), after)
            && self.peers.get(id)?.outbound.queue.len() == 1
        {
            // If others wait behind this message the host has work enough while this one comes.
            Waited::Now
        } else {
            Waited::No
        };
        let marked = self.decide_mark(id, body.frame_type(), waited);
        let header = Header { marked, ..header };
        let payload = length as usize;
        let length = if segment.is_bulk() {
            self.write_bulk(&header, &body, (send, offset.into()), (payload, payload), out)?
        } else {
            let source = &self.sends.get(send)?.source;
            let fill = |place: &mut [u8]| source.read(offset.into(), place);
            wire::write_data(&header, &body, payload, out, fill)
        };
        self.went_out(id, body.frame_type(), marked, length, payload)
    }

    /// Writes a frame with a body of a fixed length, marked if it is `waited` for.
    fn write_marked(
        &mut self,
        id: PeerId,
        header: Header,
        body: &Body<'_>,
        waited: Waited,
        out: &mut [u8],
    ) -> Option<Outgoing> {
        let marked = self.decide_mark(id, body.frame_type(), waited);
        let length = wire::write(&Header { marked, ..header }, body, out);
        self.went_out(id, body.frame_type(), marked, length, 0)
    }

    /// Writes what has come and what is missing, `marked` if it ends a burst.
    fn write_ack(&mut self, id: PeerId, marked: bool, out: &mut [u8]) -> Option<Outgoing> {
        let mut bitmap = [0; BITMAP];
        let length = self.peers.get(id)?.inbound.bitmap(&mut bitmap);
        let body = Body::Ack(&bitmap[..length]);
        let header = Header { marked, ..self.header(id, true)? };
        let length = wire::write(&header, &body, out);
        self.went_out(id, FrameType::Ack, marked, length, 0)
    }

    fn write_control(&mut self, id: PeerId, body: &Body<'_>, out: &mut [u8]) -> Option<Outgoing> {
        let header = self.header(id, false)?;
        self.write_marked(id, header, body, Waited::No, out)
    }

    /// Writes a request for a block. The last one of those that wait is marked.
    fn write_pull(
        &mut self,
        now: Instant,
        id: PeerId,
        block: Block,
        out: &mut [u8],
    ) -> Option<Outgoing> {
        self.asking(now, id, block);
        let Block { pull: name, first, offset, missing, .. } = block;
        let pull = self.pulls.active.get(&name);
        let ask = pull.is_some_and(|pull| pull.is_waited_for(&block, self.config.blocks));
        let body = Body::Pull(Pull {
            region: pull.map_or(0, |pull| pull.region),
            pull: name,
            offset,
            wanted: missing,
            first,
            payload: pull.map_or(0, |pull| pull.payload as u16),
        });
        let header = Header { ask, ..self.header(id, false)? };
        let is_last = self.peers.get(id)?.to_request.is_empty();
        let waited = if is_last { Waited::WithNext } else { Waited::No };
        self.write_marked(id, header, &body, waited, out)
    }

    fn write_reply(&mut self, out: &mut [u8]) -> Option<Outgoing> {
        let mut job = self.take_job()?;
        let region = self.regions.get(job.region, job.peer)?;
        let Job { peer: id, pull, .. } = job;
        if job.is_bulk() {
            return self.write_run(job, region, out);
        }
        let payload = u64::from(job.payload);
        let bit = job.wanted.trailing_zeros();
        job.wanted &= job.wanted - 1;
        let header = self.header(id, false)?;
        let sending = self.sends.get(region.send)?;
        let offset = job.offset + u64::from(bit) * payload;
        let payload = sending.total.checked_sub(offset)?.min(payload) as usize;
        let is_last = job.wanted == 0;
        let after = job.wanted.count_ones();
        let is_half = job.prompt
            && is_half_way(self.config.marks, job.sent, after)
            && self.peers.get(id)?.announced == 1;
        let waited = if is_last && job.prompt || is_half { Waited::Now } else { Waited::No };
        job.sent += 1;
        let marked = self.decide_mark(id, FrameType::Reply, waited);
        let sending = self.sends.get(region.send)?;
        let body = Body::Reply { pull, index: job.first.wrapping_add(bit), data: &[] };
        let header = Header { marked, ask: is_last, ..header };
        let fill = |place: &mut [u8]| sending.source.read(offset, place);
        let length = wire::write_data(&header, &body, payload, out, fill);
        self.put_back(job);
        self.went_out(id, FrameType::Reply, marked, length, payload)
    }

    /// What the next frame to a peer says. It takes the acknowledgement along.
    pub(super) fn header(&mut self, id: PeerId, with_bitmap: bool) -> Option<Header> {
        let peer = self.peers.get_mut(id)?;
        peer.inbound.ack_sent(with_bitmap);
        peer.granted_sent = peer.granted;
        Some(Header {
            crc: peer.crc,
            full: peer.full_since.is_some(),
            to: peer.address.endpoint,
            from: self.address.endpoint,
            token: peer.theirs.map_or(0, |theirs| theirs.token),
            seq: peer.outbound.next(),
            ack: peer.inbound.next(),
            credit: peer.granted.0,
            window: self.config.window,
            ..Header::default()
        })
    }

    fn write_connect(
        &mut self,
        id: PeerId,
        status: ConnectStatus,
        token: u32,
        out: &mut [u8],
    ) -> Option<Outgoing> {
        let header = self.header(id, false)?;
        let peer = self.peers.get(id)?;
        let connect = Connect { status, key: peer.key, ..self.introduction(peer.token) };
        // A peer that adopts this has seen none of the frames that may be under way already.
        let seq = peer.outbound.first();
        let header = Header { token, seq, crc: true, ..header };
        let length = wire::write(&header, &Body::Connect(connect), out);
        self.went_out(id, FrameType::Connect, false, length, 0)
    }

    fn introduction(&self, token: u32) -> Connect {
        Connect {
            instance: self.instance,
            token,
            key: 0,
            version: VERSION,
            mtu: self.config.mtu,
            status: ConnectStatus::Accepted,
            crc: self.config.crc,
        }
    }

    fn write_stray(&mut self, stray: Stray, out: &mut [u8]) -> Outgoing {
        let header = |to: Address, token| Header {
            crc: true,
            to: to.endpoint,
            from: self.address.endpoint,
            token,
            ..Header::default()
        };
        let (to, header, body) = match stray {
            Stray::Answer { to, token, status } => {
                let answer = Connect { status, ..self.introduction(0) };
                (to, header(to, token), Body::Connect(answer))
            }
            Stray::Nack { to, token, reason } => {
                (to, header(to, 0), Body::Nack(Nack { token, reason }))
            }
            Stray::LastAck { to, header } => (to, header, Body::Ack(&[])),
        };
        let length = wire::write(&header, &body, out);
        self.counters.sent[body.frame_type().index()] += 1;
        Outgoing {
            frame_type: Some(body.frame_type()),
            ..Outgoing::new(to.nic, to.endpoint, length)
        }
    }

    pub(super) fn went_out(
        &mut self,
        id: PeerId,
        frame_type: FrameType,
        marked: bool,
        length: usize,
        payload: usize,
    ) -> Option<Outgoing> {
        let Address { nic, endpoint } = self.peers.get(id)?.address;
        self.counters.sent[frame_type.index()] += 1;
        self.counters.marked += u64::from(marked);
        let frame_type = Some(frame_type);
        Some(Outgoing { marked, frame_type, payload, ..Outgoing::new(nic, endpoint, length) })
    }
}
