//! Frames out: buffers that the driver fills, and the device gives back when it has read them.

use std::sync::Arc;

use super::layout::{HEADER, QueueLayout};
use super::ring::{Ring, RingError};
use sys::memory::{Buffers, SharedMemory};

pub(super) struct Transmitter {
    ring: Ring,
    buffers: Buffers,
    /// Buffers that the driver has, first in, first out: with a device that completes in order,
    /// the ring then looks the same in each lap, and most of it need not be written.
    free: Box<[u16]>,
    next: u16,
    count: u16,
    sent: u64,
    full: u64,
}

impl Transmitter {
    /// A queue whose buffers are all free.
    pub(super) fn new(memory: &Arc<SharedMemory>, place: &QueueLayout, ring: Ring) -> Self {
        let size = ring.size();
        // Each begins with a header of zeros, which asks for no offload, and is never written.
        let buffers = Buffers::new(memory, place.buffers, size.into(), place.stride);
        (0..size).for_each(|id| ring.place(id, place.address(id)));
        let free = (0..size).collect();
        Self { ring, buffers, free, next: 0, count: size, sent: 0, full: 0 }
    }

    pub(super) fn ring(&mut self) -> &mut Ring {
        &mut self.ring
    }

    /// How many frames were sent, how often there was no room for one, and how often the device was
    /// notified of frames.
    pub(super) fn counters(&self) -> [u64; 3] {
        [self.sent, self.full, self.ring.kicks()]
    }

    /// Puts a frame into the ring, to be seen with the next flush; `false` if there is no room, and
    /// then everything in the ring was flushed.
    #[inline]
    pub(super) fn send(&mut self, frame: &[u8]) -> Result<bool, RingError> {
        if self.count == 0 {
            self.reclaim()?;
            if self.count == 0 {
                self.full += 1;
                self.ring.flush();
                return Ok(false);
            }
        }
        let id = self.free[usize::from(self.next)];
        self.next = (self.next + 1) & (self.ring.size() - 1);
        self.count -= 1;
        self.buffers.write(id, HEADER, frame);
        self.ring.describe(id, (HEADER + frame.len()) as u32, 0);
        self.ring.post(id);
        self.sent += 1;
        Ok(true)
    }

    /// Asks for an interrupt when half of what the device has was read; whether there is room
    /// already.
    pub(super) fn arm(&mut self) -> Result<bool, RingError> {
        self.ring.flush();
        self.reclaim()?;
        if self.count > 0 {
            return Ok(true);
        }
        Ok(self.ring.arm((self.ring.size() / 2).max(1)))
    }

    /// Takes back what the device has read.
    fn reclaim(&mut self) -> Result<(), RingError> {
        self.ring.disarm();
        while let Some(used) = self.ring.take()? {
            let end = self.next.wrapping_add(self.count) & (self.ring.size() - 1);
            self.free[usize::from(end)] = used.id;
            self.count += 1;
        }
        Ok(())
    }
}
