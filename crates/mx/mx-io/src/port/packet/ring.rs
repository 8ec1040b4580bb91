//! Frames in, without system calls: a ring of slots that the kernel fills (`TPACKET_V2`).
//!
//! Each slot begins with a word that says whose it is. The kernel writes a frame into the next slot
//! that is its own and hands it over; a frame that finds none is dropped and counted. The newer
//! `TPACKET_V3` hands over blocks of frames, and a block that is not full after a timer of at least
//! a millisecond: a lone frame, which a host waits for, would wait for that.
//!
//! Layout: `include/uapi/linux/if_packet.h`.

use std::ffi::c_void;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use sys::option;

/// Memory of a block, in bytes: it has to be contiguous, so the kernel should not need much of it.
const BLOCK: usize = 64 << 10;

/// What slots are aligned to (`TPACKET_ALIGNMENT`).
const ALIGNMENT: usize = 16;

/// Bytes before the frame in a slot: the header, an address, and the Ethernet header, which ends
/// where an aligned packet begins.
const BEFORE_PACKET: usize = 96;

const KERNEL: u32 = libc::TP_STATUS_KERNEL;

pub(super) struct Ring {
    start: NonNull<u8>,
    bytes: usize,
    slot_bytes: usize,
    slots_per_block: usize,
    /// Which block, and which slot there, is next.
    block: usize,
    slot: usize,
    /// Where that begins, worked out once: it is looked at again and again.
    current: NonNull<u8>,
}

// SAFETY: the mapping is not tied to a thread, and slots are read through `&mut self` only.
// JUSTIFICATION: a pointer field takes that ability away.
unsafe impl Send for Ring {}

pub(super) enum Slot<'a> {
    /// From the Ethernet header on; a VLAN tag was taken out.
    Frame(&'a [u8]),
    /// It did not fit.
    Cut,
}

impl Ring {
    pub(super) fn new(socket: BorrowedFd<'_>, mtu: usize, bytes: usize) -> io::Result<Self> {
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        option::set_int(socket, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        let slot_bytes = (BEFORE_PACKET + mtu).next_multiple_of(ALIGNMENT);
        let slots_per_block = BLOCK / slot_bytes;
        let blocks = bytes.div_ceil(BLOCK).max(1);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: (blocks * slots_per_block) as u32,
        };
        // SAFETY: the option takes a `tpacket_req` with version 2.
        // JUSTIFICATION: there is no safe call for it.
        unsafe { option::set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request) }?;
        let bytes = blocks * BLOCK;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses the address, and maps the memory of the ring there.
        // JUSTIFICATION: that is the only way to see a ring.
        let start = unsafe { mmap(null_mut(), bytes, protection, flags, socket.as_fd(), 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let (block, slot, current) = (0, 0, start);
        Ok(Self { start, bytes, slot_bytes, slots_per_block, block, slot, current })
    }

    pub(super) fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Shows the next frame to `look` and gives its slot back; `None` if there is none.
    pub(super) fn take<R>(&mut self, look: impl FnOnce(Slot<'_>) -> R) -> Option<R> {
        if !self.is_ready() {
            return None;
        }
        let seen = look(self.frame());
        self.status().store(KERNEL, Ordering::Release);
        self.slot += 1;
        if self.slot == self.slots_per_block {
            self.slot = 0;
            self.block = (self.block + 1) % (self.bytes / BLOCK);
        }
        let at = self.block * BLOCK + self.slot * self.slot_bytes;
        // SAFETY: block and slot are below their numbers, and all of them are in the mapping.
        // JUSTIFICATION: the ring is only known by its address.
        self.current = unsafe { self.start.add(at) };
        Some(seen)
    }

    /// The frame in the current slot, which must be ours.
    fn frame(&self) -> Slot<'_> {
        let header = self.current.cast::<libc::tpacket2_hdr>();
        // SAFETY: the slot is ours, is aligned, and begins with a header, all of whose bits have
        // meaning.
        // JUSTIFICATION: the ring is only known by its address.
        let header = unsafe { header.read() };
        let (at, length) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        let in_slot = at <= self.slot_bytes && length <= self.slot_bytes - at;
        if header.tp_snaplen != header.tp_len || !in_slot {
            return Slot::Cut;
        }
        // SAFETY: `at` is inside of the slot.
        // JUSTIFICATION: the ring is only known by its address.
        let start = unsafe { self.current.add(at) };
        // SAFETY: these bytes are inside of the slot, the kernel has written them, and does not
        // touch them until the slot is its own, which takes `&mut self`.
        // JUSTIFICATION: a copy would cost as much as the rest.
        Slot::Frame(unsafe { NonNull::slice_from_raw_parts(start, length).as_ref() })
    }

    fn status(&self) -> &AtomicU32 {
        const AT: usize = offset_of!(libc::tpacket2_hdr, tp_status);
        // SAFETY: the header is in the mapping.
        // JUSTIFICATION: the ring is only known by its address.
        let word = unsafe { self.current.add(AT) }.cast::<u32>();
        // SAFETY: the word is aligned, stays mapped as long as `self`, and is only ever accessed as
        // an atomic while it may change.
        // JUSTIFICATION: it is shared with the kernel.
        unsafe { AtomicU32::from_ptr(word.as_ptr()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping, and no slice of it is left.
        // JUSTIFICATION: nothing else unmaps it.
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.bytes) };
    }
}
