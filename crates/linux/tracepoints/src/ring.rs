//! The ring that events of a processor write into, and that we read.
//!
//! One page of bookkeeping, then a power of two of pages of records. The kernel moves `data_head`
//! on after it has written; we move `data_tail` on after we have read. Records between the two are
//! ours. Both count bytes and never go back. Source: `include/uapi/linux/perf_event.h`, `struct
//! perf_event_mmap_page`, and the comment there on the order of reads and writes.

use std::ffi::c_void;
use std::io;
use std::mem::size_of;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

/// Where `data_head` is in the page of bookkeeping; `data_tail` follows.
const HEAD: usize = 1_024;
const TAIL: usize = HEAD + size_of::<u64>();

#[derive(Debug)]
pub(crate) struct PerfRing {
    start: NonNull<u8>,
    page: usize,
    /// Of records; a power of two.
    bytes: usize,
}

// SAFETY: the mapping is not tied to a thread, and is read through `&mut self` only.
// JUSTIFICATION: a pointer field takes that ability away.
unsafe impl Send for PerfRing {}

impl PerfRing {
    /// Maps the ring of an event, with room for at least `bytes` bytes of records.
    pub(super) fn map(event: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let page = page_size();
        let bytes = bytes.max(page).next_power_of_two();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses the address, and maps the memory of the ring there.
        // JUSTIFICATION: that is the only way to see a ring.
        let start = unsafe { mmap(null_mut(), page + bytes, protection, flags, event, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, page, bytes })
    }

    /// Appends what was written since the last time to `to`: whole records.
    pub(crate) fn take(&mut self, to: &mut Vec<u8>) {
        let head = self.counter(HEAD).load(Ordering::Acquire);
        let tail = self.counter(TAIL).load(Ordering::Relaxed);
        // The kernel never leaves more than there is room for.
        let length = (head.wrapping_sub(tail) as usize).min(self.bytes);
        let from = tail as usize & (self.bytes - 1);
        let before_end = length.min(self.bytes - from);
        self.copy(from, before_end, to);
        self.copy(0, length - before_end, to);
        self.counter(TAIL).store(head, Ordering::Release);
    }

    /// Copies bytes that are between tail and head.
    fn copy(&self, from: usize, length: usize, to: &mut Vec<u8>) {
        debug_assert!(from + length <= self.bytes);
        // SAFETY: the offset is inside of the mapping.
        // JUSTIFICATION: the ring is only known by its address.
        let start = unsafe { self.start.add(self.page + from) };
        // SAFETY: these bytes are in the mapping, the kernel has written them before it moved the
        // head, and leaves them alone until we move the tail, which takes `&mut self`.
        // JUSTIFICATION: the ring is only known by its address.
        let bytes = unsafe { NonNull::slice_from_raw_parts(start, length).as_ref() };
        to.extend_from_slice(bytes);
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the offset is inside of the first page.
        // JUSTIFICATION: the ring is only known by its address.
        let counter = unsafe { self.start.add(at) }.cast::<u64>();
        // SAFETY: it is aligned, stays mapped as long as `self`, and is only ever accessed as an
        // atomic.
        // JUSTIFICATION: it is shared with the kernel.
        unsafe { AtomicU64::from_ptr(counter.as_ptr()) }
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping, and no slice of it is left.
        // JUSTIFICATION: nothing else unmaps it.
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.page + self.bytes) };
    }
}
