//! Where rings and packet buffers are in the shared memory.

use super::ring::RingLayout;
use sys::memory::{CACHE_LINE, Layout};

/// What stands before each frame: `virtio_net_hdr_v1` of `include/uapi/linux/virtio_net.h`.
pub(super) const HEADER: usize = 12;

/// The shortest frame: an Ethernet header.
pub(super) const MIN_FRAME: usize = 14;

/// What a frame may have beyond the MTU: an Ethernet header and a VLAN tag.
pub(super) const FRAMING: usize = 18;

/// Bytes of a receive buffer if the device may spread a frame over several: the usual frame fits
/// into one.
const MERGED_ROOM: usize = HEADER + FRAMING + 1500;

/// Where the device finds the memory in descriptors ("guest addresses"). Any number would do; that
/// it is neither 0 nor [`RING_BASE`] shows a device that mixes them up.
pub(super) const BUFFER_BASE: u64 = 0x1_0000_0000;

/// Where the device finds the memory as messages about rings have it ("user addresses").
pub(super) const RING_BASE: u64 = 0x2_0000_0000;

#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLayout {
    pub ring: RingLayout,
    pub buffers: usize,
    /// From one buffer to the next, in bytes.
    pub stride: usize,
    /// What a buffer holds, header included, in bytes.
    pub room: usize,
}

impl QueueLayout {
    pub(super) fn take(layout: &mut Layout, size: u16, room: usize) -> Self {
        let ring = RingLayout::take(layout, size);
        // An odd number of cache lines: buffers that begin at multiples of a power of two would
        // share few of the sets of a cache.
        let stride = (room.div_ceil(CACHE_LINE) | 1) * CACHE_LINE;
        let buffers = layout.take(usize::from(size) * stride);
        Self { ring, buffers, stride, room }
    }

    /// Where the device finds a buffer.
    pub(super) fn address(&self, id: u16) -> u64 {
        BUFFER_BASE + (self.buffers + usize::from(id) * self.stride) as u64
    }
}

pub(super) fn receive_room(largest: usize, merges: bool) -> usize {
    let whole = HEADER + largest;
    if merges { whole.min(MERGED_ROOM) } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_hold_what_they_must_and_spread_over_the_cache() {
        for room in [26, 76, 1526, 1530, 1536, 2048, 9030] {
            let mut layout = Layout::default();
            let queue = QueueLayout::take(&mut layout, 8, room);
            assert!(queue.stride >= room && queue.stride / CACHE_LINE % 2 == 1);
            assert!(layout.bytes() >= queue.buffers + 8 * queue.stride);
            assert_eq!(queue.address(1) - queue.address(0), queue.stride as u64);
        }
    }

    #[test]
    fn usual_frame_needs_one_buffer() {
        assert_eq!(receive_room(1518, true), 1530);
        assert_eq!(receive_room(9018, true), 1530);
        assert_eq!(receive_room(9018, false), 9030);
    }
}
