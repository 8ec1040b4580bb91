//! Numbered frames on their way out: they are kept until they are acknowledged, and sent again when
//! they are missing.
//!
//! # How a missing frame is found
//!
//! Each transmission has a number of its own, a second one of the same frame too. When so many
//! later transmissions have been acknowledged that reordering does not explain it, the frame is
//! lost (RFC 9002, section 6.1.1, "packet threshold"); or when one has been and the frame was sent
//! so long ago that nothing explains it (6.1.2, "time threshold"). When nothing is acknowledged for
//! a while, the first frame is sent again, to make the peer say what it has; after a second timeout
//! all frames count as lost.
//!
//! If an acknowledgement shows that a frame had not been lost, but was only late, the threshold
//! rises: networks that reorder are not sent everything twice.
//!
//! On a bulk path nothing is lost: its frames are only sent again when it was closed.

use alloc::collections::VecDeque;

use base::time::{Duration, Instant};

use super::congestion::Congestion;
use super::rtt::Rtt;
use crate::config::Config;
use crate::ids::SendId;
use crate::seq::Seq;
use crate::wire::{Header, Notify};

/// What a numbered frame carries. It can be written again at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Small(SendId),
    /// A piece of one, which may be long enough for a bulk path only.
    Medium {
        send: SendId,
        offset: u32,
        length: u16,
        bulk: bool,
    },
    /// The announcement of one, under this name.
    Announce {
        send: SendId,
        region: u32,
    },
    Notify(Notify),
    Close,
}

/// Work that becomes numbered frames, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Message(SendId),
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sent,
    /// The peer has it, but not all frames before it.
    Arrived,
    /// To be sent again.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resent {
    /// Others are lost, too.
    OneOfMany,
    /// After it none is missing.
    Last,
}

impl Segment {
    pub(crate) const fn is_bulk(self) -> bool {
        matches!(self, Self::Medium { bulk: true, .. })
    }
}

#[derive(Clone, Copy, Debug)]
struct SentFrame {
    segment: Segment,
    state: State,
    transmission: u64,
    sent_at: Instant,
    /// How many frames had been delivered then.
    delivered: u64,
    again: bool,
}

/// Reordering up to here is taken for reordering.
const PACKET_THRESHOLD: u64 = 3;
/// Up to here the threshold rises.
const MAX_PACKET_THRESHOLD: u64 = 64;
const FIRST_WINDOW: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct Outbound {
    pub(crate) queue: VecDeque<Item>,
    /// From the first frame that is not acknowledged.
    sent: VecDeque<SentFrame>,
    /// The number of the oldest frame that is not acknowledged.
    first: Seq,
    /// The peer takes no frames from here on.
    limit: Seq,
    /// The peer takes no new messages.
    full: bool,
    pub(crate) has_begun: bool,
    /// Ends of transfers, which overtake messages: they need no room at the peer.
    pub(crate) notifies: VecDeque<Notify>,
    /// How many bytes of eager messages the peer permits, since it was connected.
    credit: Seq,
    /// How many have been sent.
    used: Seq,
    lost: u32,
    in_flight: u32,
    transmissions: u64,
    /// The latest transmission that arrived.
    largest_acked: u64,
    packet_threshold: u64,
    window: u32,
    delivered: u64,
    /// The most frames that arrived in the time of the shortest round trip: in this round, and in
    /// the one before.
    bdp_frames: [u32; 2],
    /// Another round begins with this transmission.
    round: u64,
    congestion: Congestion,
    pub(crate) rtt: Rtt,
    /// Probe timeouts in a row (RFC 9002, section 6.2).
    pto_count: u32,
    pto_at: Option<Instant>,
}

/// What an acknowledgement changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckProgress {
    /// Frames that were not acknowledged before.
    pub(crate) frames: u32,
    pub(crate) lost: u32,
    /// Frames that were sent again for nothing.
    pub(crate) needless: u32,
    /// When the latest frame was sent that was sent once, and what had been delivered then.
    sample: Option<(Instant, u64)>,
}

impl Outbound {
    pub(crate) fn new(first: Seq, config: &Config) -> Self {
        let window = u32::from(config.window);
        Self {
            first,
            limit: first,
            packet_threshold: PACKET_THRESHOLD,
            window,
            congestion: Congestion::new(FIRST_WINDOW.min(window), 1, window),
            ..Self::default()
        }
    }

    /// The number of the first frame that is not acknowledged.
    pub(crate) const fn first(&self) -> Seq {
        self.first
    }

    pub(crate) fn next(&self) -> Seq {
        self.first.plus(self.sent.len() as u32)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Whether there is work that the peer does not permit.
    pub(crate) fn is_shut_out(&self) -> bool {
        let no_frames = self.limit.after(self.next()) <= 0;
        !self.queue.is_empty() && self.sent.is_empty() && (no_frames || self.full)
    }

    pub(crate) fn credit(&self) -> u32 {
        self.credit.after(self.used).max(0) as u32
    }

    pub(crate) fn use_credit(&mut self, bytes: u32) {
        self.used = self.used.plus(bytes);
    }

    /// What the peer permits at first. Nothing has been sent to it yet.
    pub(crate) fn meet(&mut self, header: &Header) {
        self.limit = self.first.plus(u32::from(header.window).min(self.window));
        (self.credit, self.used) = (Seq(header.credit), Seq(0));
        self.full = header.full;
    }

    /// What the peer permits, as of any frame of its; late frames permit less and change nothing.
    pub(crate) fn permit(&mut self, header: &Header) {
        let limit = header.ack.plus(u32::from(header.window).min(self.window));
        if header.ack.after(self.first) >= 0 {
            self.limit = self.limit.max(limit);
            self.full = header.full;
        }
        self.credit = self.credit.max(Seq(header.credit));
    }

    /// Whether the message at the head of the queue may begin, or go on.
    pub(crate) fn may_begin(&self) -> bool {
        self.has_begun || !self.full
    }

    /// Whether a lost frame may go out now, with or without a bulk path that takes frames.
    pub(crate) fn may_resend(&self, has_bulk_path: bool) -> bool {
        self.lost > 0
            && self.in_flight < self.congestion.window()
            && (has_bulk_path || !self.first_lost().is_some_and(|frame| frame.segment.is_bulk()))
    }

    fn first_lost(&self) -> Option<&SentFrame> {
        self.sent.iter().find(|frame| frame.state == State::Lost)
    }

    pub(crate) fn bulk_path_closed(&mut self) {
        let was_on_it = |frame: &SentFrame| frame.state == State::Sent && frame.segment.is_bulk();
        self.lose(usize::MAX, was_on_it);
    }

    /// Marks the first frames, so many at most, that are `lost`; how many.
    fn lose(&mut self, most: usize, lost: impl Fn(&SentFrame) -> bool) -> u32 {
        let mut found = 0;
        for frame in self.sent.iter_mut().filter(|frame| lost(frame)).take(most) {
            frame.state = State::Lost;
            found += 1;
        }
        self.lost += found;
        self.in_flight -= found;
        found
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.lost == 0 && self.queue.is_empty() && self.notifies.is_empty()
    }

    /// Whether another frame may go out now, if there is one.
    pub(crate) fn may_send(&self) -> bool {
        self.room() > 0
    }

    /// How many frames may go out now that have not been out before.
    pub(crate) fn room(&self) -> u32 {
        if self.lost > 0 {
            return 0;
        }
        let congestion = self.congestion.window().saturating_sub(self.in_flight);
        let own = self.window.saturating_sub(self.sent.len() as u32);
        let limit = self.limit.after(self.next()).max(0) as u32;
        congestion.min(own).min(limit)
    }

    /// The first lost frame goes out again: its number, what it carries, and whether others are
    /// lost.
    pub(crate) fn resend(
        &mut self,
        now: Instant,
        config: &Config,
    ) -> Option<(Seq, Segment, Resent)> {
        let place = self.sent.iter().position(|frame| frame.state == State::Lost)?;
        self.lost -= 1;
        self.in_flight += 1;
        self.transmissions += 1;
        let transmission = self.transmissions;
        let delivered = self.delivered;
        let frame = &mut self.sent[place];
        let segment = frame.segment;
        let state = State::Sent;
        *frame = SentFrame { segment, state, transmission, sent_at: now, delivered, again: true };
        self.arm_pto(now, config);
        let resent = if self.lost == 0 { Resent::Last } else { Resent::OneOfMany };
        Some((self.first.plus(place as u32), segment, resent))
    }

    pub(crate) fn send(&mut self, now: Instant, segment: Segment, config: &Config) -> Seq {
        let seq = self.next();
        self.transmissions += 1;
        self.in_flight += 1;
        self.sent.push_back(SentFrame {
            segment,
            state: State::Sent,
            transmission: self.transmissions,
            sent_at: now,
            delivered: self.delivered,
            again: false,
        });
        if self.pto_at.is_none() {
            self.arm_pto(now, config);
        }
        seq
    }

    /// The peer has all frames before `ack`, and those of the bitmap; each that is done with is
    /// passed to `done`. None if the peer claims what was never sent.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ack: Seq,
        bitmap: &[u8],
        config: &Config,
        mut done: impl FnMut(Segment),
    ) -> Option<AckProgress> {
        let count = ack.after(self.first);
        if count > self.sent.len() as i32 {
            return None;
        }
        let was_limiting = self.in_flight >= self.congestion.window();
        let mut progress = AckProgress::default();
        for _ in 0..count {
            let frame = self.sent.pop_front()?;
            self.first = self.first.plus(1);
            self.arrived(now, frame, &mut progress);
            done(frame.segment);
        }
        // An old acknowledgement says nothing about frames after the missing one.
        if count >= 0 {
            self.on_bitmap(now, bitmap, &mut progress);
        }
        if progress.frames > 0 {
            self.pto_count = 0;
            self.update_bdp(now, &progress);
            self.find_lost(now, config, &mut progress);
            if was_limiting {
                self.congestion.on_ack(progress.frames);
            }
            self.pto_at = None;
            if self.in_flight > 0 {
                self.arm_pto(now, config);
            }
        }
        Some(progress)
    }

    /// How much the way carries: what was delivered while a frame was under way, as a part of the
    /// time that this took, for the time that it takes when there is no queue.
    fn update_bdp(&mut self, now: Instant, progress: &AckProgress) {
        let Some((sent_at, before)) = progress.sample else { return };
        let took = now.since(sent_at).as_nanos().max(1);
        let frames = (self.delivered - before).saturating_mul(self.rtt.min().as_nanos()) / took;
        if self.largest_acked >= self.round {
            self.bdp_frames = [0, self.bdp_frames[0]];
            self.round = self.transmissions + 1;
        }
        self.bdp_frames[0] = self.bdp_frames[0].max(frames.min(u64::from(self.window)) as u32);
    }

    fn on_bitmap(&mut self, now: Instant, bitmap: &[u8], progress: &mut AckProgress) {
        for (byte, bits) in bitmap.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let place = byte * 8 + bits.trailing_zeros() as usize + 1;
                bits &= bits - 1;
                let Some(&frame) = self.sent.get(place) else { return };
                if frame.state != State::Arrived {
                    self.arrived(now, frame, progress);
                    self.sent[place].state = State::Arrived;
                }
            }
        }
    }

    fn arrived(&mut self, now: Instant, frame: SentFrame, progress: &mut AckProgress) {
        match frame.state {
            State::Sent => self.in_flight -= 1,
            State::Lost => self.lost -= 1,
            State::Arrived => return,
        }
        progress.frames += 1;
        self.delivered += 1;
        if frame.state == State::Lost {
            // It was only late.
            self.packet_threshold = (self.packet_threshold * 2).min(MAX_PACKET_THRESHOLD);
            progress.needless += 1;
        } else if !frame.again {
            // After a retransmission it is unknown which of the two arrived (Karn's rule).
            self.rtt.update(now.since(frame.sent_at));
            progress.sample = Some((frame.sent_at, frame.delivered));
            self.largest_acked = self.largest_acked.max(frame.transmission);
        } else if now.since(frame.sent_at) >= self.rtt.shortest_answer() {
            self.largest_acked = self.largest_acked.max(frame.transmission);
        } else {
            // Too early for an answer to the second transmission.
            self.packet_threshold = (self.packet_threshold * 2).min(MAX_PACKET_THRESHOLD);
            progress.needless += 1;
        }
    }

    /// Whatever was sent well before the latest that arrived is lost.
    fn find_lost(&mut self, now: Instant, config: &Config, progress: &mut AckProgress) {
        if self.in_flight == 0 {
            return;
        }
        let longest = self.first_pto(config);
        let bdp_frames = self.bdp_frames[0].max(self.bdp_frames[1]);
        // A window that is not used is not what filled a queue.
        let is_used = self.in_flight * 2 >= self.congestion.window();
        let Self { sent, largest_acked, packet_threshold, transmissions, congestion, .. } = self;
        for frame in sent {
            let is_overtaken = frame.transmission + *packet_threshold <= *largest_acked
                || frame.transmission < *largest_acked && now.since(frame.sent_at) > longest;
            if frame.state == State::Sent && !frame.segment.is_bulk() && is_overtaken {
                frame.state = State::Lost;
                progress.lost += 1;
                if !is_used {
                    continue;
                }
                congestion.on_loss(frame.transmission, *transmissions + 1, bdp_frames);
            }
        }
        self.lost += progress.lost;
        self.in_flight -= progress.lost;
    }

    /// When something has to be done without a word from the peer.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.pto_at
    }

    /// The probe timeout is over: how many frames go out again. If there are none since all are on
    /// a bulk path, the peer has to be asked what it has.
    pub(crate) fn on_pto(&mut self, now: Instant, config: &Config) -> u32 {
        self.pto_count += 1;
        let count = if self.pto_count == 1 { 1 } else { usize::MAX };
        let is_open = |frame: &SentFrame| frame.state == State::Sent && !frame.segment.is_bulk();
        let found = self.lose(count, is_open);
        if self.pto_count > 1 && found > 0 {
            self.congestion.on_timeout(self.transmissions + 1);
        }
        self.arm_pto(now, config);
        found
    }

    /// The probe timeout: after this time an acknowledgement is missing.
    pub(crate) fn pto(&self, config: &Config) -> Duration {
        self.first_pto(config).times(1 << self.pto_count.min(16)).min(config.longest_wait())
    }

    fn first_pto(&self, config: &Config) -> Duration {
        (self.rtt.pto() + config.ack_delay).max(config.resend_min)
    }

    fn arm_pto(&mut self, now: Instant, config: &Config) {
        self.pto_at = Some(now + self.pto(config));
    }

    pub(crate) fn abandon(&mut self, mut left: impl FnMut(SendId)) {
        for frame in self.sent.drain(..) {
            match frame.segment {
                Segment::Small(send)
                | Segment::Medium { send, .. }
                | Segment::Announce { send, .. } => left(send),
                Segment::Notify(_) | Segment::Close => {}
            }
        }
        for item in self.queue.drain(..) {
            if let Item::Message(send) = item {
                left(send);
            }
        }
        self.notifies.clear();
        (self.lost, self.in_flight, self.pto_at) = (0, 0, None);
    }
}

#[cfg(test)]
mod tests;
