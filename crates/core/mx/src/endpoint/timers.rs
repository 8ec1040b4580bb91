//! Queues and timers: retransmission, acknowledgements, keep-alive, loss of peers.

use alloc::collections::{BTreeSet, VecDeque};

use base::time::Instant;

use super::Endpoint;
use super::connect::CONNECT_AGAIN;
use crate::address::Address;
use crate::buffers::{Sink, Source};
use crate::counters::DropReason;
use crate::ids::PeerId;
use crate::peer::{ConnectionState, Expected};
use crate::status::{Event, RequestError};
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

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// When [`Endpoint::handle_timeout`] has to be called: a little early, perhaps. A time in the
    /// past means at once: since it was not called then, or, with [`Instant::ZERO`], as long as
    /// there is something to [read](Endpoint::next_read). Once [`Endpoint::handle_timeout`] has
    /// returned and nothing is left to read, it is later than the time that this call was given.
    pub fn deadline(&self) -> Option<Instant> {
        if !self.reads.is_empty() {
            return Some(Instant::ZERO);
        }
        let Schedule { changed, timers, .. } = &self.schedule;
        let changed = changed.and_then(|(now, id)| {
            let peer = self.peers.get(id)?;
            peer.deadline(&peer.watched(now, &self.config), &self.config)
        });
        timers.first().map(|(at, _)| *at).into_iter().chain(changed).min()
    }

    fn first_timer(&mut self) -> Option<Instant> {
        if let Some((changed_at, id)) = self.schedule.changed.take() {
            self.set_timer(changed_at, id);
        }
        self.schedule.timers.first().map(|(at, _)| *at)
    }

    /// Whether something is due, as far as timers are set. That of the peer that has changed last
    /// is not, so this costs less than [`deadline`](Self::deadline).
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.schedule.timers.first().is_some_and(|(at, _)| *at <= now)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.first_timer().is_some_and(|at| at <= now)
            && let Some((_, id)) = self.schedule.timers.pop_first()
        {
            if let Some(peer) = self.peers.get_mut(id) {
                peer.timer_at = None;
            }
            self.expire_peer(now, id);
            self.timer_changed(now, id);
        }
    }

    fn expire_peer(&mut self, now: Instant, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let is_over = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_over(peer.connect_until) {
            if peer.link == ConnectionState::Answered {
                self.counters.drop(DropReason::Stranger);
                if peer.wanted_until.is_some() {
                    return self.start_over(now, id);
                }
            }
            let is_up = peer.link == ConnectionState::Up;
            let reason = if is_up { RequestError::Unreachable } else { RequestError::Timeout };
            return self.lose(now, id, reason);
        }
        if is_over(peer.watch.liveness.deadline(self.config.peer_timeout)) {
            return self.lose(now, id, RequestError::Unreachable);
        }
        if peer.link == ConnectionState::Up && is_over(peer.wanted_until) {
            // It does not answer. Whether it is gone shows when something is expected of it.
            peer.wanted_until = None;
            // It may not have heard yet that we are alive.
            peer.connect_at = peer.connect_at.filter(|_| peer.connect_until.is_some());
            self.events.push_back(Event::Connected(id, Err(RequestError::Timeout)));
        }
        if is_over(peer.connect_at) {
            peer.attempts += 1;
            let wait = CONNECT_AGAIN.times(1 << peer.attempts.min(4));
            peer.connect_at = Some(now + wait);
            peer.ask_to_connect();
        }
        if is_over(peer.outbound.deadline()) {
            if peer.outbound.on_pto(now, &self.config) == 0 {
                peer.due.ask();
            }
            self.counters.probe_timeouts += 1;
        }
        peer.inbound.handle_timeout(now);
        let watch = &mut peer.watch;
        if is_over(watch.probe_at) {
            watch.probe_every = watch.probe_every.times(2).min(self.config.probe_interval());
            watch.probe_at = Some(now + watch.probe_every);
            watch.liveness.probed();
            peer.due.ask();
        }
        let answered_at = peer.watch.liveness.since(Expected::Reply);
        if self.ask_again(id, |block| block.due(answered_at) <= now) {
            self.ask_for_more(now);
        }
        self.wake(id);
    }

    /// Something has changed on which the timer of a peer depends. It is set when somebody wants to
    /// know it, or that of another changes: most often the same changes again before that.
    pub(super) fn timer_changed(&mut self, now: Instant, id: PeerId) {
        if let Some((changed_at, other)) = self.schedule.changed.replace((now, id))
            && other != id
        {
            self.set_timer(changed_at, other);
        }
    }

    fn set_timer(&mut self, now: Instant, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.watch = peer.watched(now, &self.config);
        let Some(at) = peer.deadline(&peer.watch, &self.config) else { return };
        // A timer that is early costs a look; setting it for every frame would cost more.
        if peer.timer_at.is_some_and(|timer_at| timer_at <= at) {
            return;
        }
        if let Some(before) = peer.timer_at.replace(at) {
            self.schedule.timers.remove(&(before, id));
        }
        self.schedule.timers.insert((at, id));
    }
}
