//! Peers that have come by themselves: how many there may be, and of which hosts.
//!
//! Each host may have as many as there are places left, so none takes all of them. When a request
//! finds no place, some guests of its host are asked whether they are still there, or of all hosts
//! if it has none, and those that do not answer are lost in time. The request is not answered;
//! a peer that is alive repeats it. One that is wanted here, too, is a guest no longer.
//!
//! Of those that were answered and have not shown yet that they are alive, a new one replaces the
//! oldest: requests are easily forged, and an honest peer uses the answer at once.

use core::ops::Bound;

use base::time::Instant;

use super::Endpoint;
use super::peers::{Guests, Peers};
use crate::address::{Address, NicId};
use crate::buffers::{Sink, Source};
use crate::counters::DropReason;
use crate::ids::PeerId;
use crate::peer::ConnectionState;
use crate::status::RequestError;

/// So many that have asked may not yet have shown that they are alive.
const MAX_ANSWERED: usize = 1024;
/// Guests that are asked whether they are there, for each request that finds no place.
const ASKED_GUESTS: usize = 4;

impl<S: Source, R: Sink> Endpoint<S, R> {
    pub(super) fn host_of(&self, NicId(mut nic): NicId) -> NicId {
        nic[usize::from(self.config.host_bytes)..].fill(0);
        NicId(nic)
    }

    pub(super) fn has_place(&self, host: NicId) -> bool {
        let Guests { count, hosts, .. } = &self.peers.guests;
        hosts.get(&host).copied().unwrap_or(0) < self.config.guests.saturating_sub(*count)
    }

    pub(super) fn is_guest(&mut self, id: PeerId, host: NicId) {
        if let Some(peer) = self.peers.get_mut(id) {
            peer.guest_of = Some(host);
            self.peers.guests.came(host);
        }
    }

    pub(super) fn is_no_guest(&mut self, id: PeerId) {
        if let Some(host) = self.peers.get_mut(id).and_then(|peer| peer.guest_of.take()) {
            self.peers.guests.left(host);
        }
    }

    /// A guest was answered: it counts as one of those that may not be alive.
    pub(super) fn note_answered(&mut self, now: Instant, id: PeerId) {
        let answered = &mut self.peers.guests.answered;
        answered.push_back(id);
        let oldest = if answered.len() > MAX_ANSWERED { answered.pop_front() } else { None };
        let Some(oldest) = oldest else { return };
        let is_unused =
            |link, wanted: Option<Instant>| link == ConnectionState::Answered && wanted.is_none();
        if self.peers.get(oldest).is_some_and(|peer| is_unused(peer.link, peer.wanted_until)) {
            self.counters.drop(DropReason::Stranger);
            self.lose(now, oldest, RequestError::Timeout);
        }
    }

    /// Asks some guests whether they are still there, others than the last time: those of the host
    /// that wants another place, or of all if it has none.
    pub(super) fn doubt_guests(&mut self, now: Instant, host: NicId) {
        let has_some = self.peers.guests.hosts.contains_key(&host);
        let first = Address { nic: if has_some { host } else { NicId::default() }, endpoint: 0 };
        for _ in 0..ASKED_GUESTS {
            let Peers { by_address, guests, .. } = &self.peers;
            let is_meant = |address: &Address| !has_some || self.host_of(address.nic) == host;
            let after = (Bound::Excluded(guests.doubted.max(first)), Bound::Unbounded);
            let next = by_address.range(after).next().filter(|(address, _)| is_meant(address));
            let Some((&address, &id)) = next.or_else(|| by_address.range(first..).next()) else {
                return;
            };
            self.peers.guests.doubted = address;
            if let Some(peer) = self.peers.get_mut(id)
                && peer.guest_of.is_some()
                && peer.link == ConnectionState::Up
            {
                peer.is_doubted = true;
                self.timer_changed(now, id);
            }
        }
    }
}
