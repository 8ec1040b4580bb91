//! The driver's half of a split virtqueue (virtio 1.2, section 2.7; the kernel's is
//! `drivers/virtio/virtio_ring.c`).
//!
//! ```text
//!   descriptor table   where each buffer is, and whether it is for writing    driver writes
//!   available ring     which buffers the device may use, and up to where      driver writes
//!   used ring          which of them it has used, and how much it wrote       device writes
//! ```
//!
//! Indices count buffers from 0 and wrap at 65,536; a ring has a power of two of them. Each side
//! also writes at which index of the other's it wants to be notified
//! (`VIRTIO_RING_F_EVENT_IDX`), at the end of its own ring; without that feature, a flag says
//! whether it does.
//!
//! # What costs, and how it is avoided
//!
//! Both sides run on different cores, so each cache line that one writes is fetched by the other.
//! Indices are published once a batch. A buffer has one descriptor, always the same, so a
//! descriptor changes only when the length does; and if buffers come back in the order in which
//! they went, as they do from most devices, an entry of the available ring does not change from lap
//! to lap. What does not change is not written again.
//!
//! # What the device is not trusted with
//!
//! The driver keeps books of its own and reads nothing back from what it wrote. What the device
//! says is checked against them: how many buffers it used, which, and how many bytes it wrote
//! there. A ring that was found broken stays so.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, fence};

use virtio_bindings::virtio_ring::{
    VRING_AVAIL_F_NO_INTERRUPT, VRING_DESC_F_WRITE, VRING_USED_F_NO_NOTIFY,
};

use sys::memory::{Layout, SharedMemory, Words};

/// Descriptor flag: the device writes there.
pub(super) const WRITE: u16 = VRING_DESC_F_WRITE as u16;

/// Flag of the available ring: no interrupts, please.
const NO_INTERRUPT: u16 = VRING_AVAIL_F_NO_INTERRUPT as u16;

/// Flag of the used ring: no kicks, please.
const NO_NOTIFY: u16 = VRING_USED_F_NO_NOTIFY as u16;

/// Where the flags and the index are, in each of the rings.
const FLAGS: usize = 0;
const INDEX: usize = 1;

/// Where the entries of the available ring begin, in words.
const ENTRIES: usize = 2;

/// How far an event index that was passed may fall behind before it is moved. What is wanted is at
/// most a ring ahead, so the two are never confused.
const STALE: u16 = MAX_RING;

/// The most buffers of a ring of this driver. The specification allows twice as many.
pub(super) const MAX_RING: u16 = 0x4000;

/// Which rule the device broke.
#[expect(missing_docs, reason = "the messages say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    #[error("its used index is {0} ahead, with {1} buffers given")]
    Index(u16, u16),
    #[error("it used buffer {0}, which it does not have")]
    Buffer(u32),
    #[error("it wrote {0} bytes, where {1} to {2} fit")]
    Length(u32, u32, u32),
    #[error("it spread a frame over {0} buffers and used {1}")]
    Merge(u16, u16),
    #[error("it was broken before")]
    Before,
}

/// Where the parts of a ring are, in bytes from the start of the memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingLayout {
    /// How many buffers it has: a power of two, at most [`MAX_RING`].
    pub size: u16,
    pub descriptors: usize,
    pub available: usize,
    pub used: usize,
}

impl RingLayout {
    pub(super) fn take(layout: &mut Layout, size: u16) -> Self {
        let entries = usize::from(size);
        let descriptors = layout.take(16 * entries);
        let available = layout.take(2 * (ENTRIES + entries + 1));
        let used = layout.take(4 + 8 * entries + 2);
        Self { size, descriptors, available, used }
    }
}

/// A buffer that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Used {
    pub id: u16,
    /// How many bytes the device says it wrote.
    pub length: u32,
}

pub(super) struct Ring {
    descriptors: Words<AtomicU64>,
    available: Words<AtomicU16>,
    used: Words<AtomicU16>,
    elements: Words<AtomicU32>,
    available_event: Words<AtomicU16>,
    /// Made readable to notify the device of new buffers.
    kick: OwnedFd,
    event_index: bool,
    mask: u16,
    /// The available index, after what was posted.
    posted: u16,
    /// The available index as the device sees it.
    published: u16,
    /// The used index, as last read.
    seen: u16,
    /// The used index, after what was taken.
    taken: u16,
    /// What the device reads in the used event index.
    interrupt_at: u16,
    /// Whether the device has the buffer.
    given: Box<[bool]>,
    /// The second words of the descriptors, as written.
    written: Box<[u64]>,
    /// The entries of the available ring, as written.
    listed: Box<[u16]>,
    kicks: u64,
    broken: bool,
}

impl Ring {
    /// An empty ring in memory that is all zeros, without interrupts.
    pub(super) fn new(
        memory: &Arc<SharedMemory>,
        place: RingLayout,
        kick: OwnedFd,
        event_index: bool,
    ) -> Self {
        let size = usize::from(place.size);
        let ring = Self {
            descriptors: Words::new(memory, place.descriptors, 2 * size),
            available: Words::new(memory, place.available, ENTRIES + size + 1),
            used: Words::new(memory, place.used, 2),
            elements: Words::new(memory, place.used + 4, 2 * size),
            available_event: Words::new(memory, place.used + 4 + 8 * size, 1),
            kick,
            event_index,
            mask: place.size - 1,
            posted: 0,
            published: 0,
            seen: 0,
            taken: 0,
            interrupt_at: u16::MAX,
            given: vec![false; size].into(),
            written: vec![0; size].into(),
            listed: vec![0; size].into(),
            kicks: 0,
            broken: false,
        };
        ring.available[ENTRIES + size].store(u16::MAX.to_le(), Relaxed);
        ring.available[FLAGS].store(if event_index { 0 } else { NO_INTERRUPT.to_le() }, Relaxed);
        ring
    }

    pub(super) fn size(&self) -> u16 {
        self.mask + 1
    }

    /// What makes the device look at the ring.
    pub(super) fn kick_fd(&self) -> &OwnedFd {
        &self.kick
    }

    /// How often the device was notified of new buffers.
    pub(super) fn kicks(&self) -> u64 {
        self.kicks
    }

    /// Says where descriptor `id` points, as the device counts addresses.
    pub(super) fn place(&self, id: u16, address: u64) {
        self.descriptors[2 * usize::from(id)].store(address.to_le(), Relaxed);
    }

    #[inline]
    pub(super) fn describe(&mut self, id: u16, length: u32, flags: u16) {
        let word = u64::from(length) | u64::from(flags) << 32;
        let written = &mut self.written[usize::from(id)];
        if *written != word {
            *written = word;
            self.descriptors[2 * usize::from(id) + 1].store(word.to_le(), Relaxed);
        }
    }

    /// Puts buffer `id` into the available ring. The device sees it when it is
    /// [flushed](Self::flush).
    #[inline]
    pub(super) fn post(&mut self, id: u16) {
        let slot = usize::from(self.posted & self.mask);
        if self.listed[slot] != id {
            self.listed[slot] = id;
            self.available[ENTRIES + slot].store(id.to_le(), Relaxed);
        }
        self.posted = self.posted.wrapping_add(1);
    }

    /// Lets the device see what was posted, and notifies it if it asked for that.
    pub(super) fn flush(&mut self) {
        if self.flush_used() {
            self.kicks += 1;
            // It fails only if the device has not read the last 2^64 - 2 kicks: then it is as
            // readable as can be.
            let _ = rustix::io::write(&self.kick, &1_u64.to_ne_bytes());
        }
    }

    /// Lets the device see what was posted; whether it wants to be notified.
    fn flush_used(&mut self) -> bool {
        let (old, new) = (self.published, self.posted);
        if old == new {
            return false;
        }
        // Not before: a device must not give back what it cannot have seen.
        for index in 0..new.wrapping_sub(old) {
            let slot = usize::from(old.wrapping_add(index) & self.mask);
            self.given[usize::from(self.listed[slot])] = true;
        }
        // Buffers, descriptors and entries before the index that covers them.
        self.available[INDEX].store(new.to_le(), Release);
        self.published = new;
        // The index before the question whether to notify: the device asks first and looks again
        // after, so that one of both sees the other (virtio 1.2, section 2.7.13.4).
        fence(SeqCst);
        if self.event_index {
            let event = u16::from_le(self.available_event[0].load(Relaxed));
            needs_event(event, new, old)
        } else {
            u16::from_le(self.used[FLAGS].load(Relaxed)) & NO_NOTIFY == 0
        }
    }

    /// How many buffers the device has used that were not taken yet.
    fn used(&mut self) -> Result<u16, RingError> {
        if self.seen == self.taken {
            self.look()?;
        }
        Ok(self.seen.wrapping_sub(self.taken))
    }

    /// The same, but looks at what the device says now.
    pub(super) fn used_now(&mut self) -> Result<u16, RingError> {
        self.look()?;
        Ok(self.seen.wrapping_sub(self.taken))
    }

    /// Reads how far the device is.
    fn look(&mut self) -> Result<(), RingError> {
        if self.broken {
            return Err(RingError::Before);
        }
        // The index before the elements that it covers, and what the device wrote into buffers.
        let seen = u16::from_le(self.used[INDEX].load(Acquire));
        let ahead = seen.wrapping_sub(self.taken);
        let given = self.published.wrapping_sub(self.taken);
        if ahead > given {
            return Err(self.fault(RingError::Index(ahead, given)));
        }
        self.seen = seen;
        self.silence();
        Ok(())
    }

    /// Takes the next buffer that the device has used.
    #[inline]
    pub(super) fn take(&mut self) -> Result<Option<Used>, RingError> {
        if self.used()? == 0 {
            return Ok(None);
        }
        let slot = 2 * usize::from(self.taken & self.mask);
        let id = u32::from_le(self.elements[slot].load(Relaxed));
        let length = u32::from_le(self.elements[slot + 1].load(Relaxed));
        match self.given.get_mut(id as usize) {
            Some(given) if *given => *given = false,
            _ => return Err(self.fault(RingError::Buffer(id))),
        }
        self.taken = self.taken.wrapping_add(1);
        Ok(Some(Used { id: id as u16, length }))
    }

    /// Remembers that the device cannot be believed.
    pub(super) fn fault(&mut self, error: RingError) -> RingError {
        self.broken = true;
        self.seen = self.taken;
        error
    }

    /// Asks for an interrupt when `after` more buffers were used than were taken, and whether that
    /// many are there already. Then there may be no interrupt, and it is for the caller to look.
    pub(super) fn arm(&mut self, after: u16) -> bool {
        if self.event_index {
            // The event is the index before the one that is waited for.
            self.want_interrupt_at(self.taken.wrapping_add(after).wrapping_sub(1));
        } else {
            self.available[FLAGS].store(0, Relaxed);
        }
        // The request before the look: the device does it the other way round, so that one of both
        // sees the other (virtio 1.2, section 2.7.7.1).
        fence(SeqCst);
        let there = u16::from_le(self.used[INDEX].load(Relaxed)).wrapping_sub(self.taken);
        there >= after
    }

    /// Asks for no interrupts; one may be on its way.
    pub(super) fn disarm(&mut self) {
        if !self.event_index {
            self.available[FLAGS].store(NO_INTERRUPT.to_le(), Relaxed);
        }
    }

    /// Keeps an event index that has passed from coming round again.
    fn silence(&mut self) {
        let behind = self.taken.wrapping_sub(self.interrupt_at);
        if self.event_index && (STALE..=u16::MAX - STALE).contains(&behind) {
            self.want_interrupt_at(self.taken.wrapping_sub(1));
        }
    }

    fn want_interrupt_at(&mut self, index: u16) {
        self.interrupt_at = index;
        self.available[ENTRIES + usize::from(self.mask) + 1].store(index.to_le(), Relaxed);
    }
}

/// Whether an index that moves from `old` to `new` passes `event` (`vring_need_event` of
/// `include/uapi/linux/virtio_ring.h`).
const fn needs_event(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}
