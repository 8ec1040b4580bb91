//! A port that reaches its own host, too: frames for the NIC that it is on go through shared memory
//! ([`shm`](super::shm)), all others through another port.
//!
//! An Ethernet interface does not hear what it sends, so two endpoints on it could not talk
//! otherwise. A broadcast goes both ways. Datagrams would find their way through the kernel, which
//! costs more; those for an address of this host for which no port listens here take that way
//! still.
//!
//! One who sleeps sleeps on the descriptors of both. While a receiver on this host has no room,
//! frames for others wait, too: for 10 ms at most, if it takes nothing.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;

use mx::wire::BULK_FRAME;

use super::packet::PacketPort;
use super::shm::{ShmPort, ShmSettings};
use super::tcp_bulk::TcpBulkPort;
use super::udp::UdpPort;
use super::{
    Address, Arrivals, BROADCAST, BulkState, Filtered, Identity, LATER, MORE_READINESS, NicId,
    Port, PortCounters, PortError, Reference, Room, TakeFrame, Transmitted, WriteFrame, in_turns,
};

/// A port with a way within this host.
pub struct LocalPort<P> {
    outer: P,
    shm: ShmPort,
    is_near: fn(own: NicId, other: NicId) -> bool,
    /// Whether the other port reaches this host, as well.
    has_detour: bool,
    near_first: bool,
    /// Where frames are written that may be too long for the other port.
    staging: Box<[u8]>,
}

impl LocalPort<PacketPort> {
    /// Opens `endpoint` of an interface in the network of this thread, and a way to the other
    /// endpoints there.
    pub fn open(interface: &str, endpoint: u8) -> Result<Self, PortError> {
        let outer = PacketPort::open(interface, endpoint)?;
        let index = outer.index();
        Self::new(outer, index)
    }
}

impl LocalPort<TcpBulkPort<PacketPort>> {
    /// Opens `endpoint` of an interface in the network of this thread, with TCP connections for
    /// bulk data at `address`, which is that of the interface, and a way to the other endpoints
    /// there.
    pub fn with_tcp_bulk(
        interface: &str,
        endpoint: u8,
        address: Ipv4Addr,
    ) -> Result<Self, PortError> {
        let outer = PacketPort::open(interface, endpoint)?;
        let index = outer.index();
        Self::new(TcpBulkPort::new(outer, index, address)?, index)
    }
}

/// The scope of datagrams; those of interfaces are their indices, from 1 on.
const DATAGRAMS: u32 = 0;

impl LocalPort<UdpPort> {
    /// Opens a socket in the network of this thread, and a way to others at its address.
    pub fn over_udp(endpoint: u8, local: SocketAddrV4) -> Result<Self, PortError> {
        let local = Self::new(UdpPort::open(endpoint, local)?, DATAGRAMS)?;
        // Each has a UDP port of its own, which is a part of the name.
        let is_near = |own: NicId, other: NicId| own.0[..4] == other.0[..4];
        Ok(Self { is_near, has_detour: true, ..local })
    }
}

impl<P: Port> LocalPort<P> {
    /// Adds a way to those who have the same NIC and the same `scope` ([`ShmSettings::scope`]).
    ///
    /// # Errors
    /// As for [`ShmPort::open`]; or `outer` has three descriptors, and no place for a fourth.
    pub fn new(outer: P, scope: u32) -> Result<Self, PortError> {
        if outer.more_readiness().len() >= MORE_READINESS {
            let what = "a port that has three descriptors to wait for".to_owned();
            let range = "one with two or fewer";
            return Err(PortError::Setting { port: outer.nic_id().to_string(), what, range });
        }
        let settings = ShmSettings::new(scope, outer.mtu());
        let shm = ShmPort::open(outer.nic_id(), outer.endpoint(), settings)?;
        let is_near = |own: NicId, other: NicId| own == other;
        let staging = vec![0; BULK_FRAME].into();
        Ok(Self { outer, shm, is_near, has_detour: false, near_first: false, staging })
    }

    fn one_way(
        &mut self,
        near: bool,
        budget: usize,
        take: &mut TakeFrame<'_>,
    ) -> Result<usize, PortError> {
        if !near {
            return self.outer.receive(budget, take);
        }
        let (own, is_near) = (self.outer.nic_id(), self.is_near);
        self.shm.receive(budget, &mut FromThisHost { own, is_near, take })
    }
}

/// What comes within this host: no port here speaks for another one.
struct FromThisHost<'a, 'b> {
    own: NicId,
    is_near: fn(NicId, NicId) -> bool,
    take: &'a mut TakeFrame<'b>,
}

impl Arrivals for FromThisHost<'_, '_> {
    fn take(&mut self, from: NicId, frame: &[u8]) {
        if (self.is_near)(self.own, from) {
            self.take.take(from, frame);
        }
    }

    fn take_reference(&mut self, from: NicId, frame: &[u8], reference: Reference) {
        if (self.is_near)(self.own, from) {
            self.take.take_reference(from, frame, reference);
        }
    }
}

impl<P: Port> Port for LocalPort<P> {
    fn identity(&self) -> Identity {
        self.outer.identity()
    }

    fn transmit(&mut self, write: &mut WriteFrame<'_>) -> Result<Transmitted, PortError> {
        let Self { outer, shm, is_near, has_detour, staging, .. } = self;
        let own = outer.nic_id();
        let mut has_room = shm.flush();
        let next = |write: &mut WriteFrame<'_>, frame: &mut [u8]| {
            while has_room {
                // Only another path of the outer port has room enough for frames of any length.
                let is_long = frame.len() < BULK_FRAME && shm.has_paths();
                let place = if is_long { &mut **staging } else { &mut *frame };
                let outgoing = write.next(place)?;
                let data = write.data();
                let written = &place[..outgoing.length - data.len()];
                let to = outgoing.address();
                let is_near = is_near(own, outgoing.to) && (!*has_detour || shm.reaches(to));
                if is_near {
                    has_room = shm.offer(to, written, data);
                    continue;
                }
                if outgoing.to == BROADCAST {
                    shm.broadcast(written);
                }
                if !is_long {
                    return Some(outgoing);
                }
                if let Some(frame) = frame.get_mut(..outgoing.length) {
                    frame.copy_from_slice(&staging[..outgoing.length]);
                    return Some(outgoing);
                }
                // The path of a long one has just closed, which the engine will hear.
            }
            None
        };
        let outcome = outer.transmit(&mut Filtered { frames: write, next })?;
        // The other port may be full, too; a sender that comes back for this one will see.
        Ok(if has_room { outcome } else { Transmitted::Full(Room::Later(LATER)) })
    }

    fn bulk_changes(&mut self) -> Vec<(Address, BulkState)> {
        let mut all = self.shm.bulk_changes();
        all.append(&mut self.outer.bulk_changes());
        all
    }

    fn close_bulk_path(&mut self, peer: Address) {
        self.shm.close_bulk_path(peer);
        self.outer.close_bulk_path(peer);
    }

    fn read(&mut self, peer: Address, reference: Reference, place: &mut [u8]) -> bool {
        self.shm.read(peer, reference, place)
    }

    fn receive(&mut self, budget: usize, take: &mut TakeFrame<'_>) -> Result<usize, PortError> {
        let mut near_first = self.near_first;
        let came = in_turns(&mut near_first, budget, |near, most| self.one_way(near, most, take));
        self.near_first = near_first;
        came
    }

    fn arm(&mut self) -> Result<bool, PortError> {
        Ok(self.shm.arm()? | self.outer.arm()?)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.outer.readiness()
    }

    fn more_readiness(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = self.outer.more_readiness();
        all.push(self.shm.readiness());
        all
    }

    fn clear(&mut self) -> Result<(), PortError> {
        // A frame from outside was reason enough. If there is another reason, its descriptor says
        // so again.
        if !self.outer.arm()? {
            self.shm.clear()?;
        }
        self.outer.clear()
    }

    fn counters(&mut self) -> PortCounters {
        self.outer.counters().and(self.shm.counters())
    }
}
