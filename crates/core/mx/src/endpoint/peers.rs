//! The peers of an endpoint: by name, by address, those that came by themselves, and those that
//! were lost.

use alloc::collections::{BTreeMap, VecDeque};

use slotmap::SlotMap;

use crate::address::{Address, NicId};
use crate::ids::PeerId;
use crate::peer::Peer;
use crate::status::RequestError;

/// So many lost peers are remembered, to say why they were lost.
const MAX_LOST: usize = 256;

#[derive(Debug)]
struct Lost {
    id: PeerId,
    address: Address,
    reason: RequestError,
}

#[derive(Debug, Default)]
pub(super) struct Guests {
    pub(super) count: u32,
    pub(super) hosts: BTreeMap<NicId, u32>,
    /// Those that were answered, the oldest first. Some may be connected or lost.
    pub(super) answered: VecDeque<PeerId>,
    /// The last that was asked whether it is there.
    pub(super) doubted: Address,
}

impl Guests {
    pub(super) fn came(&mut self, host: NicId) {
        self.count += 1;
        *self.hosts.entry(host).or_default() += 1;
    }

    pub(super) fn left(&mut self, host: NicId) {
        self.count -= 1;
        if let Some(count) = self.hosts.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.hosts.remove(&host);
            }
        }
    }
}

/// What lost peers have left.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    /// The peers, in the order in which they were lost. Of some, all may have been received.
    pub(super) peers: VecDeque<PeerId>,
    pub(super) messages: u32,
    pub(super) bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Peers {
    pub(super) slots: SlotMap<PeerId, Peer>,
    pub(super) by_address: BTreeMap<Address, PeerId>,
    /// Those that may replace a peer of the same address, once they show that they are alive.
    pub(super) candidates: BTreeMap<Address, PeerId>,
    pub(super) guests: Guests,
    lost: VecDeque<Lost>,
}

impl Peers {
    #[inline]
    pub(super) fn get(&self, id: PeerId) -> Option<&Peer> {
        self.slots.get(id)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.slots.get_mut(id)
    }

    /// Addresses and names, without the candidates, in the order of addresses.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (Address, PeerId)> + '_ {
        self.by_address.iter().map(|(address, id)| (*address, *id))
    }

    pub(super) fn at(&self, address: Address) -> Option<PeerId> {
        self.by_address.get(&address).copied()
    }

    pub(super) fn set_address(&mut self, address: Address, id: PeerId) {
        self.clear_candidate(address, id);
        self.by_address.insert(address, id);
    }

    /// There is no peer at this address any more, if it was this one.
    pub(super) fn clear_address(&mut self, address: Address, id: PeerId) {
        if self.at(address) == Some(id) {
            self.by_address.remove(&address);
        }
    }

    fn clear_candidate(&mut self, address: Address, id: PeerId) {
        if self.candidates.get(&address) == Some(&id) {
            self.candidates.remove(&address);
        }
    }

    pub(super) fn remove(&mut self, id: PeerId, reason: RequestError) -> Option<Peer> {
        let peer = self.slots.remove(id)?;
        let address = peer.address;
        if let Some(host) = peer.guest_of {
            self.guests.left(host);
        }
        self.clear_address(address, id);
        self.clear_candidate(address, id);
        if self.lost.len() == MAX_LOST {
            self.lost.pop_front();
        }
        self.lost.push_back(Lost { id, address, reason });
        Some(peer)
    }

    pub(super) fn address_of(&self, id: PeerId) -> Option<Address> {
        let lost = || self.lost(id).map(|lost| lost.address);
        self.get(id).map(|peer| peer.address).or_else(lost)
    }

    pub(super) fn why_lost(&self, id: PeerId) -> RequestError {
        self.lost(id).map_or(RequestError::Unreachable, |lost| lost.reason)
    }

    fn lost(&self, id: PeerId) -> Option<&Lost> {
        self.lost.iter().find(|lost| lost.id == id)
    }
}
