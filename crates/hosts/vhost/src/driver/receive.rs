//! Frames in: buffers that the device fills, and gives back in its own time.
//!
//! All buffers belong to the device except while one is read. What it wrote is copied out, so that
//! it cannot change while the caller looks at it, and the buffer goes back at once.

use std::sync::Arc;

use super::layout::{HEADER, MIN_FRAME, QueueLayout};
use super::ring::{Ring, RingError, Used, WRITE};
use sys::memory::{Buffers, SharedMemory};

/// Where a header says over how many buffers the frame is spread (`num_buffers` of
/// `virtio_net_hdr_v1`, `include/uapi/linux/virtio_net.h`).
const BUFFERS_AT: usize = 10;

pub(super) struct Receiver {
    ring: Ring,
    buffers: Buffers,
    /// Bytes of a buffer that the device may write.
    room: u32,
    /// Whether the device may spread a frame over several buffers.
    merges: bool,
    /// The frame at hand; as long as the longest that is delivered.
    frame: Box<[u8]>,
    received: u64,
    oversized: u64,
}

impl Receiver {
    /// A queue with all its buffers handed to the device, which does not know it yet.
    pub(super) fn new(
        memory: &Arc<SharedMemory>,
        place: &QueueLayout,
        mut ring: Ring,
        merges: bool,
        largest: usize,
    ) -> Self {
        let buffers = Buffers::new(memory, place.buffers, ring.size().into(), place.stride);
        let room = place.room as u32;
        for id in 0..ring.size() {
            ring.place(id, place.address(id));
            ring.describe(id, room, WRITE);
            ring.post(id);
        }
        let frame = vec![0; largest].into();
        Self { ring, buffers, room, merges, frame, received: 0, oversized: 0 }
    }

    pub(super) fn ring(&mut self) -> &mut Ring {
        &mut self.ring
    }

    /// How many frames were delivered, how many were longer than the MTU allows, and how often the
    /// device was notified of free buffers.
    pub(super) fn counters(&self) -> [u64; 3] {
        [self.received, self.oversized, self.ring.kicks()]
    }

    /// Delivers up to `budget` frames and gives their buffers back.
    pub(super) fn receive(
        &mut self,
        budget: usize,
        mut deliver: impl FnMut(&[u8]),
    ) -> Result<usize, RingError> {
        self.ring.disarm();
        let mut delivered = 0;
        while delivered < budget {
            let Some(first) = self.ring.take()? else { break };
            match self.gather(first)? {
                Some(length) => deliver(&self.frame[..length]),
                None => self.oversized += 1,
            }
            delivered += 1;
        }
        self.ring.flush();
        self.received += delivered as u64;
        Ok(delivered)
    }

    /// Copies the frame that begins in `first`; `None` if it is too long.
    #[inline]
    fn gather(&mut self, first: Used) -> Result<Option<usize>, RingError> {
        let min = (HEADER + MIN_FRAME) as u32;
        let mut length = self.checked(first, min)? - HEADER;
        let rest = self.others(first)?;
        if length <= self.frame.len() {
            self.buffers.read(first.id, HEADER, &mut self.frame[..length]);
        }
        self.ring.post(first.id);
        for _ in 0..rest {
            let Some(used) = self.ring.take()? else { break };
            let part = self.checked(used, 1)?;
            if length + part <= self.frame.len() {
                self.buffers.read(used.id, 0, &mut self.frame[length..][..part]);
            }
            self.ring.post(used.id);
            length += part;
        }
        Ok((length <= self.frame.len()).then_some(length))
    }

    /// How many bytes the device wrote into a buffer, if that can be.
    fn checked(&mut self, used: Used, min: u32) -> Result<usize, RingError> {
        let (length, max) = (used.length, self.room);
        if (min..=max).contains(&length) {
            Ok(length as usize)
        } else {
            Err(self.ring.fault(RingError::Length(length, min, max)))
        }
    }

    /// How many more buffers the frame in `first` has.
    fn others(&mut self, first: Used) -> Result<u16, RingError> {
        if !self.merges {
            return Ok(0);
        }
        let mut buffers = [0; 2];
        self.buffers.read(first.id, BUFFERS_AT, &mut buffers);
        let buffers = u16::from_le_bytes(buffers);
        if buffers == 1 {
            return Ok(0);
        }
        // They come all at once (virtio 1.2, section 5.1.6.4.2), but the index may have been read
        // before they came.
        let used = 1 + self.ring.used_now()?;
        if buffers == 0 || buffers > used {
            return Err(self.ring.fault(RingError::Merge(buffers, used)));
        }
        Ok(buffers - 1)
    }
}
