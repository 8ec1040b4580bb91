//! One split virtqueue, the device's side (virtio 1.3, section 2.7).
//!
//! ```text
//!   descriptors   address, length, flags, next                16 bytes each
//!   available     flags, idx, ring[size], used_event          the driver writes
//!   used          flags, idx, ring[size] of id, length, avail_event   the device writes
//! ```
//!
//! The driver is not trusted. Every index is below the size of the ring, a chain is no longer than
//! [`MAX_SEGMENTS`], an indirect table has no table inside, what the device may write follows what
//! it may read, and no more buffers are available than the ring holds. Anything else is a
//! [`RingError`], after which the port is taken away from the guest.
//!
//! # Ordering
//!
//! The driver writes descriptors, then `available.idx`: it is loaded with acquire. The device
//! writes used elements, then `used.idx`: it is stored with release. Each side writes up
//! to where it has looked, and then looks again. Between the store and the load there is a full
//! fence on both sides (`virtio_store_mb` in Linux), so that one of the two always sees the other.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use virtio_bindings::virtio_ring::{
    VRING_AVAIL_ALIGN_SIZE, VRING_AVAIL_F_NO_INTERRUPT, VRING_DESC_ALIGN_SIZE,
    VRING_DESC_F_INDIRECT, VRING_DESC_F_NEXT, VRING_DESC_F_WRITE, VRING_USED_ALIGN_SIZE,
    VRING_USED_F_NO_NOTIFY,
};

use super::memory::{Access, Area, Memory, MemoryError};
use super::message::VringAddress;

/// The largest ring (virtio 1.3, 2.7).
pub const MAX_SIZE: u16 = 32_768;

/// The longest chain that is followed: far more than a frame has fragments.
pub const MAX_SEGMENTS: usize = 1_024;

const DESCRIPTOR: usize = 16;

/// How many buffers ahead one is [fetched](Ring::prefetch): what lies in the cache of another
/// processor takes as long to come as a few short frames to handle.
const PREFETCH_AHEAD: u16 = 4;
/// At most so many bytes of it, which is room for a usual frame.
const PREFETCHED: usize = 1_536;

/// Where the parts of the available and the used ring begin, in words of 16 bits.
const FLAGS: usize = 0;
const INDEX: usize = 1;
const ELEMENTS: usize = 2;

/// What a driver did wrong.
#[expect(missing_docs, reason = "the messages say it")]
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    #[error("a ring of {0} descriptors; powers of two up to {MAX_SIZE} are possible")]
    Size(u32),
    #[error("{0}: {1}")]
    Memory(&'static str, MemoryError),
    #[error("{0} buffers are available in a ring of {1}")]
    TooMany(u16, u16),
    #[error("descriptor {0} in a table of {1}")]
    Index(u16, usize),
    #[error("a chain of more than {0} descriptors")]
    Endless(usize),
    #[error("an indirect descriptor inside a table or before another descriptor")]
    Nested,
    #[error("an indirect table of {0} bytes; it has 16 for each descriptor, and at least one")]
    Table(u32),
    #[error("a descriptor for the device to read after one for it to write")]
    Order,
}

/// One buffer of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where the guest has it.
    pub address: u64,
    /// Length in bytes.
    pub length: u32,
}

/// The buffers of one or more chains: first those to read, then those to write.
#[derive(Debug, Default)]
pub struct Chain {
    /// What the device may read.
    pub readable: Vec<Segment>,
    /// What it may write.
    pub writable: Vec<Segment>,
}

impl Chain {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.readable.clear();
        self.writable.clear();
    }

    /// Copies what may be read, from `skip` bytes behind its beginning on, as far as it goes.
    pub fn read(
        &self,
        memory: &Memory,
        mut skip: u64,
        bytes: &mut [u8],
    ) -> Result<(), MemoryError> {
        let mut rest = bytes;
        for &Segment { address, length } in &self.readable {
            let before = skip.min(length.into());
            skip -= before;
            let count = rest.len().min((u64::from(length) - before) as usize);
            let (part, behind) = rest.split_at_mut(count);
            memory.read(address.saturating_add(before), part)?;
            rest = behind;
        }
        Ok(())
    }

    /// Writes `bytes` to where it may; how many there was room for.
    pub fn write(&self, memory: &Memory, bytes: &[u8]) -> Result<u32, MemoryError> {
        let mut rest = bytes;
        for &Segment { address, length } in &self.writable {
            let (part, behind) = rest.split_at(rest.len().min(length as usize));
            memory.write(address, part)?;
            rest = behind;
        }
        Ok((bytes.len() - rest.len()) as u32)
    }
}

/// The bytes of some segments; as lengths are 32 bits, no sum of [`MAX_SEGMENTS`] overflows.
pub fn length(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| u64::from(segment.length)).sum()
}

/// A ring that packets pass through.
#[derive(Debug)]
pub struct Ring {
    descriptors: Area<AtomicU64>,
    available: Area<AtomicU16>,
    used: Area<AtomicU16>,
    used_elements: Area<AtomicU32>,
    size: u16,
    event_index: bool,
    /// What of `available` has been taken.
    taken: u16,
    /// What of `available` is known to be there.
    offered: u16,
    /// Where the next used element goes.
    used_index: u16,
    /// What the driver has been shown of that.
    published: u16,
}

impl Ring {
    /// The ring at `address`; its next available buffer is number `base`.
    pub fn new(
        memory: &Memory,
        address: &VringAddress,
        size: u32,
        base: u16,
        event_index: bool,
    ) -> Result<Self, RingError> {
        let wrong = RingError::Size(size);
        let size = u16::try_from(size).map_err(|_| RingError::Size(size))?;
        if !size.is_power_of_two() || size > MAX_SIZE {
            return Err(wrong);
        }
        let entries = usize::from(size);
        let at = |what| move |error| RingError::Memory(what, error);
        let descriptors = memory
            .area(address.descriptors, 2 * entries, VRING_DESC_ALIGN_SIZE as usize)
            .map_err(at("descriptor table"))?;
        let available = memory
            .area(address.available, ELEMENTS + entries + 1, VRING_AVAIL_ALIGN_SIZE as usize)
            .map_err(at("available ring"))?;
        let used: Area<AtomicU16> = memory
            .area(address.used, ELEMENTS + 4 * entries + 1, VRING_USED_ALIGN_SIZE as usize)
            .map_err(at("used ring"))?;
        // Inside of the one before.
        let used_elements = memory
            .area(address.used + 2 * ELEMENTS as u64, 2 * entries, VRING_USED_ALIGN_SIZE as usize)
            .map_err(at("used ring"))?;
        let used_index = used.load(INDEX, Ordering::Relaxed);
        Ok(Self {
            descriptors,
            available,
            used,
            used_elements,
            size,
            event_index,
            taken: base,
            offered: base,
            used_index,
            published: used_index,
        })
    }

    /// How many buffers it holds.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// The number of the next buffer to take.
    pub fn base(&self) -> u16 {
        self.taken
    }

    /// Up to where the driver can see used buffers.
    pub fn published(&self) -> u16 {
        self.published
    }

    /// The used index once [`flush_used`](Self::flush_used) has been called.
    pub fn used_index(&self) -> u16 {
        self.used_index
    }

    /// How many buffers the driver offers.
    #[inline]
    pub fn available(&mut self) -> Result<u16, RingError> {
        let offered = self.available.load(INDEX, Ordering::Acquire);
        let available = offered.wrapping_sub(self.taken);
        if available > self.size {
            return Err(RingError::TooMany(available, self.size));
        }
        self.offered = offered;
        Ok(available)
    }

    /// The most buffers that the driver can hold: those that it has not offered, as far as known.
    #[inline]
    pub fn with_driver(&self) -> u16 {
        self.size - self.offered.wrapping_sub(self.taken)
    }

    /// Takes the next buffer and adds its segments to `chain`; its number, or `None` if there is
    /// none.
    #[inline]
    pub fn take(&mut self, memory: &Memory, chain: &mut Chain) -> Result<Option<u16>, RingError> {
        if self.offered == self.taken && self.available()? == 0 {
            return Ok(None);
        }
        let head = self.head(self.taken);
        let first = self.descriptor(head)?;
        if first.has(VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT) {
            self.follow(memory, head, chain)?;
        } else {
            first.add_to(chain, &mut false)?;
        }
        self.taken = self.taken.wrapping_add(1);
        Ok(Some(head))
    }

    /// Begins to fetch a buffer that [`take`](Self::take) will return soon, if one is known. What
    /// it holds is expected to be as long as what is handled now, which has so many bytes.
    #[inline]
    pub fn prefetch(&self, memory: &Memory, access: Access, bytes: usize) {
        if self.offered.wrapping_sub(self.taken) > PREFETCH_AHEAD {
            let head = self.head(self.taken.wrapping_add(PREFETCH_AHEAD));
            if let Ok(descriptor) = self.descriptor(head) {
                let Segment { address, length } = descriptor.segment;
                memory.prefetch(address, bytes.min(PREFETCHED).min(length as usize), access);
            }
        }
    }

    /// Puts the last `count` buffers back that [`take`](Self::take) returned and that were not
    /// used.
    pub fn put_back(&mut self, count: u16) {
        self.taken = self.taken.wrapping_sub(count);
    }

    /// The first descriptor of the buffer that was offered as this number.
    #[inline]
    fn head(&self, number: u16) -> u16 {
        let at = usize::from(number & (self.size - 1));
        self.available.load(ELEMENTS + at, Ordering::Relaxed)
    }

    #[inline]
    fn descriptor(&self, index: u16) -> Result<Descriptor, RingError> {
        if index >= self.size {
            return Err(RingError::Index(index, self.size.into()));
        }
        let at = 2 * usize::from(index);
        let address = self.descriptors.load(at, Ordering::Relaxed);
        let rest = self.descriptors.load(at + 1, Ordering::Relaxed);
        Ok(Descriptor::new(address, rest))
    }

    #[inline(never)]
    fn follow(&self, memory: &Memory, head: u16, chain: &mut Chain) -> Result<(), RingError> {
        let limit = usize::from(self.size).min(MAX_SEGMENTS);
        let mut writable = false;
        let mut next = head;
        for _ in 0..limit {
            let descriptor = self.descriptor(next)?;
            if descriptor.has(VRING_DESC_F_INDIRECT) {
                if descriptor.has(VRING_DESC_F_NEXT) {
                    return Err(RingError::Nested);
                }
                return follow_table(memory, &descriptor, chain, writable);
            }
            descriptor.add_to(chain, &mut writable)?;
            if !descriptor.has(VRING_DESC_F_NEXT) {
                return Ok(());
            }
            next = descriptor.next;
        }
        Err(RingError::Endless(limit))
    }

    /// Gives buffer `head` back, with `length` bytes written. The driver sees it when it is
    /// [flushed](Self::flush_used).
    #[inline]
    pub fn add_used(&mut self, head: u16, length: u32) {
        let at = 2 * usize::from(self.used_index & (self.size - 1));
        self.used_elements.store(at, u32::from(head), Ordering::Relaxed);
        self.used_elements.store(at + 1, length, Ordering::Relaxed);
        self.used_index = self.used_index.wrapping_add(1);
    }

    /// Shows the driver what was given back; whether there was anything. What the driver wants is
    /// to be looked at after this: a full fence stands between.
    #[inline]
    pub fn flush_used(&mut self) -> bool {
        if self.published == self.used_index {
            return false;
        }
        self.used.store(INDEX, self.used_index, Ordering::Release);
        self.published = self.used_index;
        fence(Ordering::SeqCst);
        true
    }

    /// For which used buffers the driver wants a call.
    #[inline]
    pub fn driver_event(&self) -> DriverEvent {
        if self.event_index {
            let at = ELEMENTS + usize::from(self.size);
            return DriverEvent::After(self.available.load(at, Ordering::Acquire));
        }
        let flags = self.available.load(FLAGS, Ordering::Acquire);
        if u32::from(flags) & VRING_AVAIL_F_NO_INTERRUPT == 0 {
            DriverEvent::All
        } else {
            DriverEvent::Nothing
        }
    }

    /// Asks the driver to notify the device of the next buffer that it offers. It may have offered
    /// one before it saw this: look once more afterwards.
    pub fn ask_for_kick(&mut self) {
        if self.event_index {
            let at = ELEMENTS + 4 * usize::from(self.size);
            self.used.store(at, self.taken, Ordering::Relaxed);
        } else {
            self.used.store(FLAGS, 0, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
    }

    /// Tells the driver not to notify the device. With event indices there is nothing to do: the
    /// driver passes the one that stands there, and then keeps quiet for 65535 buffers.
    pub fn want_no_kick(&mut self) {
        if !self.event_index {
            self.used.store(FLAGS, VRING_USED_F_NO_NOTIFY as u16, Ordering::Relaxed);
        }
    }
}

/// For which used buffers a driver wants a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverEvent {
    /// Nothing: it polls.
    Nothing,
    /// Of every used buffer.
    All,
    /// Of the used buffer with this number, and not of those before it.
    After(u16),
}

#[derive(Clone, Copy)]
struct Descriptor {
    segment: Segment,
    flags: u16,
    next: u16,
}

impl Descriptor {
    /// From the two words of a descriptor: the address; length, flags and next.
    #[inline]
    fn new(address: u64, rest: u64) -> Self {
        let segment = Segment { address, length: rest as u32 };
        Self { segment, flags: (rest >> 32) as u16, next: (rest >> 48) as u16 }
    }

    #[inline]
    fn has(&self, any_of: u32) -> bool {
        u32::from(self.flags) & any_of != 0
    }

    #[inline]
    fn add_to(&self, chain: &mut Chain, writable: &mut bool) -> Result<(), RingError> {
        if self.has(VRING_DESC_F_WRITE) {
            *writable = true;
            chain.writable.push(self.segment);
        } else if *writable {
            return Err(RingError::Order);
        } else {
            chain.readable.push(self.segment);
        }
        Ok(())
    }
}

/// Follows an indirect table. It is in memory at any alignment, so it is copied, one descriptor at
/// a time.
fn follow_table(
    memory: &Memory,
    table: &Descriptor,
    chain: &mut Chain,
    mut writable: bool,
) -> Result<(), RingError> {
    let Segment { address, length } = table.segment;
    if length == 0 || !length.is_multiple_of(DESCRIPTOR as u32) {
        return Err(RingError::Table(length));
    }
    let size = length as usize / DESCRIPTOR;
    let limit = size.min(MAX_SEGMENTS);
    let mut next = 0;
    for _ in 0..limit {
        let index = usize::from(next);
        if index >= size {
            return Err(RingError::Index(next, size));
        }
        let missing = |error| RingError::Memory("indirect table", error);
        let at = address.saturating_add((DESCRIPTOR * index) as u64);
        let mut bytes = [[0; 8]; 2];
        memory.read(at, bytes.as_flattened_mut()).map_err(missing)?;
        let descriptor =
            Descriptor::new(u64::from_le_bytes(bytes[0]), u64::from_le_bytes(bytes[1]));
        if descriptor.has(VRING_DESC_F_INDIRECT) {
            return Err(RingError::Nested);
        }
        descriptor.add_to(chain, &mut writable)?;
        if !descriptor.has(VRING_DESC_F_NEXT) {
            return Ok(());
        }
        next = descriptor.next;
    }
    Err(RingError::Endless(limit))
}

#[cfg(test)]
mod tests;
