//! What a frontend has set up so far: features, memory, rings.
//!
//! The session knows no socket. It takes requests and descriptors, and returns what to answer, so
//! that any order of any messages can be tried on it. A ring passes packets while it is *live*:
//! memory, size and addresses are known, it was started by a kick descriptor (or, with in-band
//! notifications, by being enabled), and it is enabled.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;

use super::connection::Connection;
use super::memory::Memory;
use super::message::{
    self, Config, F_PROTOCOL_FEATURES, FrontendRequest, Header, PROTOCOL_F_INBAND_NOTIFICATIONS,
    PROTOCOL_F_REPLY_ACK, Region, VringAddress, VringFd, VringState,
};
use super::notify::{Call, Watched};
use super::reaper::{ForeignFd, Reaper};
use super::ring::Ring;
use super::signal::{Signals, is_unix_socket};
pub use super::violation::ProtocolViolation;

/// The rings are as virtio 1.0 has them, and packets have the header of 12 bytes.
pub const VERSION_1: u64 = 1 << VIRTIO_F_VERSION_1;
/// Each side says up to which index it wants no notification.
pub const EVENT_IDX: u64 = 1 << VIRTIO_RING_F_EVENT_IDX;

/// What a device offers to its frontends.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// Virtio feature bits.
    pub features: u64,
    /// Features of the vhost-user protocol.
    pub protocol: u64,
    /// How many rings there are.
    pub rings: usize,
    /// What it says when it is asked for the number of its queues.
    pub queue_number: u16,
    /// Its configuration space; what lies beyond reads as zero.
    pub config: Vec<u8>,
}

/// What to send back, and when.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// No answer to send.
    Nothing,
    /// This message, now.
    Now(Vec<u8>),
    /// This message, when what the kicked ring holds has been taken.
    WhenServed(Vec<u8>),
}

#[derive(Debug, Default)]
struct RingSetup {
    size: u32,
    base: u16,
    address: Option<VringAddress>,
    started: bool,
    enabled: bool,
    kick: Option<Watched<ForeignFd>>,
    call: Option<Call>,
    /// An interrupt that found no [`Call`].
    missed: bool,
    ring: Option<Ring>,
    /// Counts the rings that were made here.
    generation: u32,
}

impl RingSetup {
    /// Forgets the ring, but not how far it came.
    fn dissolve(&mut self) {
        if let Some(ring) = self.ring.take() {
            self.base = ring.base();
        }
    }
}

/// What a device does with the descriptors of its sessions.
#[derive(Clone, Debug)]
pub struct Watching {
    /// The epoll instance that watches the descriptors.
    pub epoll: Arc<OwnedFd>,
    /// What it reports for a kick.
    pub kick: u64,
    /// What it reports for the channel of the backend.
    pub backend: u64,
    /// Closes the descriptors.
    pub reaper: Reaper,
    /// Writes to them.
    pub signals: Arc<Signals>,
}

impl Watching {
    /// An epoll of its own, with these tokens.
    pub fn new(kick: u64, backend: u64) -> io::Result<Self> {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let (reaper, signals) = (Reaper::start()?, Arc::new(Signals::new()?));
        Ok(Self { epoll, kick, backend, reaper, signals })
    }
}

/// The state of one frontend's device.
#[derive(Debug)]
pub struct Session {
    offers: SessionSettings,
    features: u64,
    protocol: u64,
    status: u64,
    memory: Option<Memory>,
    slots: Vec<RingSetup>,
    backend: Option<Watched<Connection>>,
    watching: Watching,
}

impl Session {
    /// A fresh device.
    pub fn new(settings: &SessionSettings, watching: Watching) -> Self {
        Self {
            offers: settings.clone(),
            features: 0,
            protocol: 0,
            status: 0,
            memory: None,
            slots: (0..settings.rings).map(|_| RingSetup::default()).collect(),
            backend: None,
            watching,
        }
    }

    /// Does what a message asks, and returns what to answer.
    pub fn handle(
        &mut self,
        header: &Header,
        request: FrontendRequest,
        fds: Vec<ForeignFd>,
    ) -> Result<Answer, ProtocolViolation> {
        let number = request.number();
        let kicked = matches!(request, FrontendRequest::VringKick(_));
        if let FrontendRequest::Unknown(number) = request {
            // An acknowledgement that was asked for says that it failed. Without, there may be
            // an answer that the frontend waits for.
            return if header.needs_reply() && self.acknowledges() {
                Ok(Answer::Now(message::reply(number, &1_u64.to_ne_bytes())))
            } else {
                Err(ProtocolViolation::Unknown(number))
            };
        }
        let reply = if let FrontendRequest::GetVringBase(state) = request {
            Some(self.stop(&request, state)?)
        } else if let Some(reply) = self.question(&request) {
            Some(reply)
        } else {
            self.instruction(request, fds)?;
            let acknowledge = header.needs_reply() && self.acknowledges();
            acknowledge.then(|| 0_u64.to_ne_bytes().to_vec())
        };
        self.refresh()?;
        Ok(match reply.map(|payload| message::reply(number, &payload)) {
            None => Answer::Nothing,
            Some(reply) if kicked => Answer::WhenServed(reply),
            Some(reply) => Answer::Now(reply),
        })
    }

    fn acknowledges(&self) -> bool {
        self.protocol & PROTOCOL_F_REPLY_ACK != 0
    }

    /// The payload of the answer, if `request` only asks.
    fn question(&self, request: &FrontendRequest) -> Option<Vec<u8>> {
        let number = match request {
            FrontendRequest::GetFeatures => self.offers.features,
            FrontendRequest::GetProtocolFeatures => self.offers.protocol,
            FrontendRequest::GetQueueNum => self.offers.queue_number.into(),
            FrontendRequest::GetStatus => self.status,
            FrontendRequest::GetConfig(config) => return Some(self.read_config(config)),
            _ => return None,
        };
        Some(number.to_ne_bytes().to_vec())
    }

    fn read_config(&self, asked: &Config) -> Vec<u8> {
        let from = asked.offset as usize;
        let bytes = (from..).take(asked.bytes.len());
        // What lies beyond the fields of this device reads as zero.
        let bytes = bytes.map(|at| self.offers.config.get(at).copied().unwrap_or(0)).collect();
        Config { bytes, ..*asked }.encode()
    }

    fn instruction(
        &mut self,
        request: FrontendRequest,
        fds: Vec<ForeignFd>,
    ) -> Result<(), ProtocolViolation> {
        let takes_fds = matches!(
            request,
            FrontendRequest::SetMemTable(_)
                | FrontendRequest::SetVringKick(_)
                | FrontendRequest::SetVringCall(_)
                | FrontendRequest::SetVringErr(_)
                | FrontendRequest::SetBackendReqFd
        );
        if !takes_fds && !fds.is_empty() {
            return Err(descriptors(&request, fds.len()));
        }
        match request {
            FrontendRequest::SetFeatures(features) => self.set_features(features)?,
            FrontendRequest::SetProtocolFeatures(features) => {
                check_features(features, self.offers.protocol)?;
                self.protocol = features;
            }
            FrontendRequest::SetStatus(status) => self.status = status,
            FrontendRequest::ResetDevice | FrontendRequest::ResetOwner => self.reset(),
            FrontendRequest::SetMemTable(regions) => self.set_memory(&regions, &fds)?,
            FrontendRequest::SetBackendReqFd => self.set_backend(fds)?,
            request => self.ring_instruction(&request, fds)?,
        }
        Ok(())
    }

    fn set_features(&mut self, features: u64) -> Result<(), ProtocolViolation> {
        check_features(features, self.offers.features)?;
        if features != self.features {
            self.slots.iter_mut().for_each(RingSetup::dissolve);
            self.features = features;
        }
        Ok(())
    }

    fn set_memory(
        &mut self,
        regions: &[Region],
        fds: &[ForeignFd],
    ) -> Result<(), ProtocolViolation> {
        self.slots.iter_mut().for_each(RingSetup::dissolve);
        self.memory = None;
        self.memory = Some(Memory::map(regions, fds, &self.watching.reaper)?);
        Ok(())
    }

    fn set_backend(&mut self, fds: Vec<ForeignFd>) -> Result<(), ProtocolViolation> {
        let [fd] = <[ForeignFd; 1]>::try_from(fds)
            .map_err(|fds| descriptors(&FrontendRequest::SetBackendReqFd, fds.len()))?;
        let Watching { epoll, backend, .. } = &self.watching;
        // With another file, the epoll and a writer might have to wait.
        let channel = is_unix_socket(fd.as_fd()).and_then(|is_socket| {
            if !is_socket {
                return Err(io::Error::other("it is no Unix socket"));
            }
            Watched::connection(epoll, Connection::new(fd), *backend)
        });
        self.backend = Some(channel.map_err(unusable("backend channel", 0))?);
        Ok(())
    }

    fn reset(&mut self) {
        self.features = 0;
        self.status = 0;
        self.slots.iter_mut().for_each(|slot| {
            *slot = RingSetup { generation: slot.generation, ..RingSetup::default() };
        });
    }

    fn ring_instruction(
        &mut self,
        request: &FrontendRequest,
        fds: Vec<ForeignFd>,
    ) -> Result<(), ProtocolViolation> {
        let index = match request {
            FrontendRequest::SetVringNum(state)
            | FrontendRequest::SetVringBase(state)
            | FrontendRequest::SetVringEnable(state)
            | FrontendRequest::VringKick(state) => state.index,
            FrontendRequest::SetVringAddr(address) => address.index,
            FrontendRequest::SetVringKick(fd)
            | FrontendRequest::SetVringCall(fd)
            | FrontendRequest::SetVringErr(fd) => fd.index.into(),
            // Set owner, and writes to a configuration space that is all read-only.
            _ => return Ok(()),
        };
        self.check_index(request, index)?;
        let slot = &mut self.slots[index as usize];
        match request {
            FrontendRequest::SetVringNum(VringState { number, .. }) => {
                slot.dissolve();
                slot.size = *number;
            }
            FrontendRequest::SetVringBase(VringState { number, .. }) => {
                slot.dissolve();
                slot.base =
                    u16::try_from(*number).map_err(|_| ProtocolViolation::Base(index, *number))?;
            }
            FrontendRequest::SetVringAddr(address) => {
                slot.dissolve();
                slot.address = Some(*address);
            }
            FrontendRequest::SetVringEnable(VringState { number, .. }) => {
                slot.enabled = *number != 0;
            }
            FrontendRequest::VringKick(_) => slot.started = true,
            FrontendRequest::SetVringKick(fd) => {
                let fd_given = one_fd(request, fd, fds)?;
                slot.kick = None;
                slot.started = true;
                if let Some(fd) = fd_given {
                    let Watching { epoll, kick, .. } = &self.watching;
                    let kick = Watched::kick(epoll, fd, *kick);
                    slot.kick = Some(kick.map_err(unusable("kick descriptor", index))?);
                }
            }
            FrontendRequest::SetVringCall(fd) => {
                let fd_given = one_fd(request, fd, fds)?;
                let call = fd_given.map(Call::new).transpose();
                slot.call = call.map_err(unusable("call descriptor", index))?;
                if let Some(call) = slot.call.as_ref().filter(|_| slot.missed) {
                    call.send(&self.watching.signals);
                    slot.missed = false;
                }
            }
            // A ring that breaks rules ends the connection, which says more than a descriptor.
            _ => {}
        }
        Ok(())
    }

    fn check_index(&self, request: &FrontendRequest, index: u32) -> Result<(), ProtocolViolation> {
        let rings = self.slots.len();
        if (index as usize) < rings {
            return Ok(());
        }
        Err(ProtocolViolation::NoSuchRing(request.to_string(), index, rings))
    }

    /// Stops a ring; the answer says how far it came.
    fn stop(
        &mut self,
        request: &FrontendRequest,
        state: VringState,
    ) -> Result<Vec<u8>, ProtocolViolation> {
        self.check_index(request, state.index)?;
        let slot = &mut self.slots[state.index as usize];
        slot.dissolve();
        slot.started = false;
        slot.kick = None;
        Ok(VringState { index: state.index, number: slot.base.into() }.encode().to_vec())
    }

    /// Makes the rings that have become complete.
    fn refresh(&mut self) -> Result<(), ProtocolViolation> {
        let Some(memory) = &self.memory else { return Ok(()) };
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let complete = slot.size > 0 && slot.ring.is_none();
            let Some(address) = slot.address.filter(|_| complete) else { continue };
            let inband = self.protocol & PROTOCOL_F_INBAND_NOTIFICATIONS != 0;
            let enabled = slot.enabled || self.features & F_PROTOCOL_FEATURES == 0;
            if !enabled || !(slot.started || inband) {
                continue;
            }
            if self.features & VERSION_1 == 0 {
                return Err(ProtocolViolation::Legacy);
            }
            let event_index = self.features & EVENT_IDX != 0;
            let ring = Ring::new(memory, &address, slot.size, slot.base, event_index);
            slot.ring = Some(ring.map_err(|error| ProtocolViolation::Ring(index, error))?);
            slot.generation += 1;
        }
        Ok(())
    }

    /// A live ring, the memory that its buffers are in, and how many rings there were before it.
    #[inline]
    pub fn ring(&mut self, index: usize) -> Option<LiveRing<'_>> {
        let slot = self.slots.get_mut(index)?;
        let live = slot.enabled || self.features & F_PROTOCOL_FEATURES == 0;
        let ring = slot.ring.as_mut().filter(|_| live)?;
        Some(LiveRing {
            memory: self.memory.as_ref()?,
            ring,
            generation: slot.generation,
            features: self.features,
        })
    }

    /// The guest's memory, if it has handed it over.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// The virtio features that both sides have.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// Whether the frontend has handed over sockets, by which it may hold its own connection open.
    pub fn holds_sockets(&self) -> bool {
        let is_socket = |slot: &RingSetup| matches!(slot.call, Some(Call::Socket(_)));
        self.backend.is_some() || self.slots.iter().any(is_socket)
    }

    /// Whether the guest has taken memory away that was accessed since.
    pub fn is_poisoned(&self) -> bool {
        self.memory.as_ref().is_some_and(Memory::is_poisoned)
    }

    /// Interrupts the guest for a ring, by descriptor or by message.
    pub fn call(&mut self, index: usize) -> Result<(), ProtocolViolation> {
        if self.protocol & PROTOCOL_F_INBAND_NOTIFICATIONS != 0
            && let Some(backend) = &self.backend
        {
            backend.inside.send(&message::vring_call(index as u32))?;
            return Ok(());
        }
        let slot = &mut self.slots[index];
        match &slot.call {
            Some(call) => call.send(&self.watching.signals),
            None => slot.missed = true,
        }
        Ok(())
    }

    /// Reads the channel of the backend, on which the frontend has nothing to say.
    pub fn check_backend(&mut self) -> Result<(), ProtocolViolation> {
        let Some(backend) = &mut self.backend else { return Ok(()) };
        match backend.inside.receive()? {
            None => Ok(()),
            Some(incoming) => Err(ProtocolViolation::Unknown(incoming.header.request)),
        }
    }
}

/// A ring that packets pass through now.
pub struct LiveRing<'a> {
    /// Where its buffers are.
    pub memory: &'a Memory,
    /// The ring of one queue.
    pub ring: &'a mut Ring,
    /// Another number: another ring, of which nothing is known.
    pub generation: u32,
    /// The virtio features that both sides have.
    pub features: u64,
}

fn check_features(taken: u64, offered: u64) -> Result<(), ProtocolViolation> {
    let foreign = taken & !offered;
    if foreign == 0 { Ok(()) } else { Err(ProtocolViolation::Features(foreign)) }
}

fn descriptors(request: &FrontendRequest, fds: usize) -> ProtocolViolation {
    ProtocolViolation::Descriptors(request.to_string(), fds)
}

fn unusable(what: &'static str, index: u32) -> impl FnOnce(io::Error) -> ProtocolViolation {
    move |cause| ProtocolViolation::Descriptor(what, index as usize, cause)
}

/// The descriptor that `request` announces, and no more.
fn one_fd(
    request: &FrontendRequest,
    fd: &VringFd,
    mut fds: Vec<ForeignFd>,
) -> Result<Option<ForeignFd>, ProtocolViolation> {
    if fds.len() != usize::from(!fd.none) {
        return Err(descriptors(request, fds.len()));
    }
    Ok(fds.pop())
}

#[cfg(test)]
mod tests;
