//! The receive side of one queue pair: from the NIC's queue into the guest's buffers.
//!
//! [The front page](super) has what the numbers mean, and why no interrupt is lost.

use std::collections::VecDeque;

use base::time::Instant;
use nic::observer::Delivered;
use nic::queue::Queue;
use virtio_bindings::virtio_net::virtio_net_hdr_v1;

use super::MRG_RXBUF;
use crate::transport::memory::{Access, Memory, MemoryError};
use crate::transport::ring::{self, Chain, DriverEvent, MAX_SEGMENTS, Ring, RingError, Segment};
use crate::transport::session::LiveRing;
use hostside::charge::Handler;
use hostside::trace::Watch;

/// Bytes before every packet, in both directions (`struct virtio_net_hdr_v1`).
pub(super) const PACKET_HEADER: usize = size_of::<virtio_net_hdr_v1>();

/// Where `num_buffers` is in it.
const NUM_BUFFERS: usize = std::mem::offset_of!(virtio_net_hdr_v1, num_buffers);

#[derive(Debug, Default)]
pub(super) struct Receiver {
    generation: u32,
    /// The guest looks at all used buffers before this number without a further interrupt.
    pub(super) signalled: u16,
    /// For each packet that the queue counts as not taken: the used index after it.
    ends: VecDeque<u16>,
    /// Buffers that a packet took lately.
    per_packet: u16,
    /// The queue has raised an interrupt that is not carried out yet.
    pub(super) raised: bool,
    /// How far the host is with it, where that [costs time](super::costs).
    pub(super) handler: Handler,
    /// A ring was made anew: whatever was signalled to its guest before is signalled once more.
    pub(super) restarted: bool,
    /// Frames that the guest had no room for.
    pub(super) refused: u64,
    pub(super) chain: Chain,
    pub(super) used: Vec<UsedElement>,
}

/// A buffer that is given back, `struct vring_used_elem`.
#[derive(Debug)]
pub(super) struct UsedElement {
    head: u16,
    length: u32,
}

/// The NIC's side of a queue pair, at one moment.
pub(super) struct Nic<'a> {
    pub(super) now: Instant,
    pub(super) queue: &'a mut Queue<Vec<u8>>,
    pub(super) watch: &'a mut Watch,
    /// Called with each packet that was signalled to the guest.
    pub(super) delivered: &'a mut dyn FnMut(&Delivered, Vec<u8>),
}

impl Receiver {
    /// Starts with another ring, if this is one. Packets that were not signalled are lost.
    pub(super) fn follow(&mut self, live: &mut LiveRing<'_>) {
        if live.generation != self.generation {
            self.generation = live.generation;
            self.signalled = live.ring.published();
            self.ends.clear();
            self.per_packet = 1;
            self.handler.reset();
            self.restarted = self.signalled != 0;
            // New buffers are looked for in every round, and before that nothing needs them.
            live.ring.want_no_kick();
        }
    }

    /// Another guest has come: its rings have nothing to do with those before.
    pub(super) fn forget(&mut self) {
        self.generation = 0;
    }

    /// Looks, before anything arrives, whether the guest has re-armed its interrupt, and how many
    /// packets it has room for.
    pub(super) fn sync(
        &mut self,
        now: Instant,
        live: &mut LiveRing<'_>,
        queue: &mut Queue<Vec<u8>>,
        watch: &mut Watch,
    ) -> Result<(), RingError> {
        self.follow(live);
        self.raised |= queue.take_interrupt();
        // With packets in the queue there is more to do, and `serve` does it.
        let waits = queue.is_masked() && !self.raised && queue.backlog() == 0;
        if waits && self.handler.is_idle() && self.rearmed_at(live.ring).is_some() {
            queue.rearm(now, watch);
        }
        self.resize(live.ring, queue)
    }

    /// A packet takes one buffer, and all but one if the MTU is small against the guest's buffers.
    pub(super) fn resize(
        &self,
        ring: &mut Ring,
        queue: &mut Queue<Vec<u8>>,
    ) -> Result<(), RingError> {
        let room = ring.available()? / self.per_packet.max(1);
        queue.set_size(self.ends.len() + usize::from(room));
        Ok(())
    }

    /// Copies what has completed, shows it to the guest, and carries out interrupts; whether the
    /// guest is to be called.
    pub(super) fn serve(
        &mut self,
        live: &mut LiveRing<'_>,
        nic: &mut Nic<'_>,
    ) -> Result<bool, RingError> {
        self.follow(live);
        self.copy(live, nic.queue, usize::MAX)?;
        live.ring.flush_used();
        let mut call = std::mem::take(&mut self.restarted);
        self.raised |= nic.queue.take_interrupt();
        if !self.raised {
            self.look(live.ring, nic);
            self.raised |= nic.queue.take_interrupt();
        }
        if std::mem::take(&mut self.raised) {
            call |= self.wants_call(live.ring);
            self.signal_all(live.ring, nic);
            // The guest looks even if there is nothing to take: at transmissions that interrupted.
            nic.queue.poll(nic.now, 0, nic.watch, &mut *nic.delivered);
        }
        self.resize(live.ring, nic.queue)?;
        Ok(call)
    }

    /// Copies the packets whose DMA has completed since the last call, `limit` of them at most.
    pub(super) fn copy(
        &mut self,
        live: &mut LiveRing<'_>,
        queue: &Queue<Vec<u8>>,
        limit: usize,
    ) -> Result<(), RingError> {
        let mut most = 0;
        for frame in queue.completed_frames(self.ends.len()).take(limit) {
            live.ring.prefetch(live.memory, Access::Write, PACKET_HEADER + frame.len());
            match put(live, frame, &mut self.chain, &mut self.used)? {
                Some(buffers) => most = most.max(buffers),
                None => self.refused += 1,
            }
            self.ends.push_back(live.ring.used_index());
        }
        if most > 0 {
            self.per_packet = most;
        }
        Ok(())
    }

    /// How far the guest had come when it re-armed, if it has done so since the last signal.
    fn rearmed_at(&self, ring: &Ring) -> Option<u16> {
        let shown = ring.published().wrapping_sub(self.signalled);
        match ring.driver_event() {
            DriverEvent::Nothing => None,
            DriverEvent::All => Some(self.signalled),
            DriverEvent::After(index) => {
                (index.wrapping_sub(self.signalled) <= shown).then_some(index)
            }
        }
    }

    /// Whether the guest asks for a call for what it has been shown.
    pub(super) fn wants_call(&self, ring: &Ring) -> bool {
        let shown = ring.published().wrapping_sub(self.signalled);
        match ring.driver_event() {
            DriverEvent::Nothing => false,
            DriverEvent::All => shown > 0,
            DriverEvent::After(index) => index.wrapping_sub(self.signalled) < shown,
        }
    }

    /// Finds out what the guest has seen by itself, and whether it has re-armed.
    fn look(&mut self, ring: &Ring, nic: &mut Nic<'_>) {
        let rearmed = self.rearmed_at(ring).map(|index| index.wrapping_sub(self.signalled));
        if rearmed.is_none() && nic.queue.is_masked() {
            // It polls, and finds what it has been shown before it re-arms.
            return self.signal_all(ring, nic);
        }
        // A guest that polls although it was not interrupted does not show it; but buffers that it
        // has posted anew are those of packets that it has taken.
        let shown = ring.published().wrapping_sub(self.signalled);
        let seen = shown.saturating_sub(ring.with_driver()).max(rearmed.unwrap_or(0));
        let before = |end: &&u16| end.wrapping_sub(self.signalled) <= seen;
        let count = self.ends.iter().take_while(before).count();
        self.signalled = self.signalled.wrapping_add(seen);
        self.signal(count, nic);
        if nic.queue.is_masked() {
            nic.queue.rearm(nic.now, nic.watch);
        }
    }

    pub(super) fn signal_all(&mut self, ring: &Ring, nic: &mut Nic<'_>) {
        self.signalled = ring.published();
        self.signal(self.ends.len(), nic);
    }

    fn signal(&mut self, count: usize, nic: &mut Nic<'_>) {
        if count > 0 {
            self.ends.drain(..count);
            nic.queue.poll(nic.now, count, nic.watch, &mut *nic.delivered);
        }
    }

    /// There is no guest: what has completed is lost, and nothing more is taken.
    pub(super) fn discard(
        &mut self,
        now: Instant,
        queue: &mut Queue<Vec<u8>>,
        pool: &mut Vec<Vec<u8>>,
    ) {
        self.ends.clear();
        self.raised = false;
        self.handler.reset();
        self.refused += hostside::discard(now, queue, pool);
    }
}

/// Copies one frame into as many buffers as it needs; how many, unless the guest has no room for
/// it.
pub(super) fn put(
    live: &mut LiveRing<'_>,
    frame: &[u8],
    chain: &mut Chain,
    used: &mut Vec<UsedElement>,
) -> Result<Option<u16>, RingError> {
    let needed = (PACKET_HEADER + frame.len()) as u64;
    chain.clear();
    used.clear();
    let mut room = 0;
    while room < needed {
        let first = chain.writable.len();
        let exhausted =
            (live.features & MRG_RXBUF == 0 && !used.is_empty()) || first > MAX_SEGMENTS;
        let head = if exhausted { None } else { live.ring.take(live.memory, chain)? };
        let Some(head) = head else {
            live.ring.put_back(used.len() as u16);
            return Ok(None);
        };
        let length = ring::length(&chain.writable[first..]).min(needed - room);
        used.push(UsedElement { head, length: length as u32 });
        room += length;
    }
    let header = header(used.len() as u16);
    match chain.writable[..] {
        // Almost always: a frame in one piece.
        [Segment { address, length }] if u64::from(length) >= needed => {
            live.memory.write_parts(address, [&header, frame]).map_err(in_buffer)?;
        }
        _ => scatter(live.memory, &chain.writable, &header, frame).map_err(in_buffer)?,
    }
    for &UsedElement { head, length } in &*used {
        live.ring.add_used(head, length);
    }
    Ok(Some(used.len() as u16))
}

/// The header of a packet in so many buffers.
#[inline]
fn header(buffers: u16) -> [u8; PACKET_HEADER] {
    const { assert!(NUM_BUFFERS + 2 == PACKET_HEADER) }
    let mut header = [0; PACKET_HEADER];
    // As the half of a word: a copy in words would wait for a half that was written by itself.
    header[NUM_BUFFERS - 2..].copy_from_slice(&(u32::from(buffers) << 16).to_le_bytes());
    header
}

/// Writes the header and the frame, one after the other, across the segments.
fn scatter(
    memory: &Memory,
    segments: &[Segment],
    header: &[u8],
    frame: &[u8],
) -> Result<(), MemoryError> {
    let mut parts = [header, frame];
    for segment in segments {
        let (mut at, mut room) = (segment.address, segment.length as usize);
        for part in &mut parts {
            let (now, later) = part.split_at(room.min(part.len()));
            if !now.is_empty() {
                memory.write(at, now)?;
            }
            at = at.saturating_add(now.len() as u64);
            room -= now.len();
            *part = later;
        }
    }
    Ok(())
}

pub(super) fn in_buffer(error: MemoryError) -> RingError {
    RingError::Memory("buffer", error)
}
