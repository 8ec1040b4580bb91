//! The page in which a calendar and its guests read each other's requests without a message.
//!
//! Layout: `struct um_timetravel_schedshm` of Linux, `include/uapi/linux/um_timetravel.h`: a header
//! of a page, then 128 bytes for each client. A guest that has it asks for no turn while it may run
//! freely, and its turn costs two messages, RUN and WAIT, instead of two for each look at its
//! clock.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use base::time::Instant;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const VERSION: u32 = 2;
const HEADER: usize = 4_096;
const CLIENT: usize = 128;

const AT_VERSION: usize = 0;
const AT_LENGTH: usize = 4;
const AT_FREE_UNTIL: usize = 8;
const AT_CURRENT_TIME: usize = 16;
const AT_RUNNING_ID: usize = 24;
const AT_MAX_CLIENTS: usize = 26;

const AT_CAPABILITIES: usize = 0;
const AT_FLAGS: usize = 4;
const AT_REQUEST_TIME: usize = 8;

/// A client reads the time, and says when it wants to run, here.
const SHARES_TIME: u32 = 1;
/// The calendar looks for kicks here. This and what follows is what `earmark kernel` adds to Linux.
const SEES_KICKS: u32 = 1 << 31;
/// A client looks for its interrupts here.
const SEES_INTERRUPTS: u32 = 1 << 30;
/// Where: a bit for each ring.
const AT_INTERRUPTS: usize = 64;
/// A client wants to run.
const WANTS_TO_RUN: u32 = 1;
/// A client has kicked its device in its turn. Added as well.
const KICKED: u32 = 1 << 31;

#[derive(Debug)]
pub(super) struct Shared {
    file: OwnedFd,
    base: NonNull<u8>,
    length: usize,
    clients: u16,
}

// SAFETY: the mapping lives as long as this, and all accesses are atomic. A calendar moves to the
// thread of the data plane.
unsafe impl Send for Shared {}

impl Shared {
    /// Memory for `guests` clients, and one more: the calendar itself, which runs when none of them
    /// does. It is time zero.
    pub(super) fn new(guests: u16) -> io::Result<Self> {
        let clients = guests + 1;
        let length = HEADER + usize::from(clients) * CLIENT;
        let file =
            memfd_create("earmark-calendar", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, length as u64)?;
        // A guest that made the file shorter would take the memory away under us.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let nowhere = std::ptr::null_mut();
        // SAFETY: a new mapping, at an address that the kernel chooses. The protocol is one of
        // shared memory; there is no safe call that maps any.
        let map = unsafe { mmap(nowhere, length, protection, MapFlags::SHARED, &file, 0) }?;
        let base = NonNull::new(map.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let shared = Self { file, base, length, clients };
        shared.word(AT_VERSION).store(VERSION, Ordering::Relaxed);
        shared.word(AT_LENGTH).store(length as u32, Ordering::Relaxed);
        shared.half(AT_MAX_CLIENTS).store(clients, Ordering::Relaxed);
        let capabilities = shared.word(shared.client(guests) + AT_CAPABILITIES);
        capabilities.store(SHARES_TIME | SEES_KICKS, Ordering::Relaxed);
        shared.run_none();
        Ok(shared)
    }

    /// What a guest maps.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The time; the guest that runs may have moved it on.
    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.long(AT_CURRENT_TIME).load(Ordering::Acquire))
    }

    pub(super) fn set_now(&self, now: Instant) {
        self.long(AT_CURRENT_TIME).store(now.as_nanos(), Ordering::Release);
    }

    /// Until when the guest that runs may go on without a word.
    pub(super) fn set_free_until(&self, until: Instant) {
        self.long(AT_FREE_UNTIL).store(until.as_nanos(), Ordering::Release);
    }

    pub(super) fn run(&self, number: u16) {
        self.half(AT_RUNNING_ID).store(number, Ordering::Release);
    }

    pub(super) fn run_none(&self) {
        self.half(AT_RUNNING_ID).store(self.clients - 1, Ordering::Release);
    }

    pub(super) fn is_shared_by(&self, number: u16) -> bool {
        self.capabilities(number) & SHARES_TIME != 0
    }

    pub(super) fn request(&self, number: u16) -> Option<u64> {
        let client = self.client(number);
        let wants = self.word(client + AT_FLAGS).load(Ordering::Acquire) & WANTS_TO_RUN != 0;
        wants.then(|| self.long(client + AT_REQUEST_TIME).load(Ordering::Acquire))
    }

    pub(super) fn take_kick(&self, number: u16) -> bool {
        let flags = self.word(self.client(number) + AT_FLAGS);
        flags.fetch_and(!KICKED, Ordering::AcqRel) & KICKED != 0
    }

    pub(super) fn sees_interrupts(&self, number: u16) -> bool {
        self.capabilities(number) & SEES_INTERRUPTS != 0
    }

    fn capabilities(&self, number: u16) -> u32 {
        self.word(self.client(number) + AT_CAPABILITIES).load(Ordering::Acquire)
    }

    pub(super) fn interrupt(&self, number: u16, rings: u64) {
        let raised = self.long(self.client(number) + AT_INTERRUPTS);
        raised.fetch_or(rings, Ordering::AcqRel);
    }

    /// Where the part of client `number` begins.
    fn client(&self, number: u16) -> usize {
        assert!(number < self.clients, "there are {} clients, and no {number}", self.clients);
        HEADER + usize::from(number) * CLIENT
    }

    fn half(&self, at: usize) -> &AtomicU16 {
        let pointer = self.at(at, size_of::<u16>());
        // SAFETY: in bounds and aligned, which `at` has checked, and all accesses to shared
        // memory are to be atomic: only a pointer leads there.
        unsafe { AtomicU16::from_ptr(pointer.cast()) }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        let pointer = self.at(at, size_of::<u32>());
        // SAFETY: as in `half`.
        unsafe { AtomicU32::from_ptr(pointer.cast()) }
    }

    fn long(&self, at: usize) -> &AtomicU64 {
        let pointer = self.at(at, size_of::<u64>());
        // SAFETY: as in `half`.
        unsafe { AtomicU64::from_ptr(pointer.cast()) }
    }

    fn at(&self, at: usize, size: usize) -> *mut u8 {
        assert!(at + size <= self.length && at.is_multiple_of(size), "a field of the layout");
        self.base.as_ptr().wrapping_add(at)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and no borrow of it is left. What was mapped by
        // hand is unmapped by hand.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_kernel_looks_for_them() {
        let shared = Shared::new(2).unwrap();
        shared.set_now(Instant::from_nanos(0x1122));
        shared.set_free_until(Instant::from_nanos(0x3344));
        shared.run(1);
        let mut bytes = [0; 32];
        rustix::io::pread(shared.fd(), &mut bytes, 0).unwrap();
        let expected = [2, 0, 0, 0, 0x80, 0x11, 0, 0, 0x44, 0x33, 0, 0, 0, 0, 0, 0, 0x22, 0x11];
        assert_eq!(bytes[..18], expected);
        assert_eq!(bytes[24..28], [1, 0, 3, 0]);
    }

    #[test]
    fn a_guest_wants_to_run_when_it_says_so() {
        let shared = Shared::new(2).unwrap();
        assert_eq!(shared.request(1), None);
        rustix::io::pwrite(shared.fd(), &77_u64.to_ne_bytes(), 4_096 + 128 + 8).unwrap();
        rustix::io::pwrite(shared.fd(), &1_u32.to_ne_bytes(), 4_096 + 128 + 4).unwrap();
        assert_eq!(shared.request(1), Some(77));
        assert_eq!(shared.request(0), None);
    }

    #[test]
    fn a_kick_is_taken_once() {
        let shared = Shared::new(1).unwrap();
        rustix::io::pwrite(shared.fd(), &(1_u32 << 31 | 1).to_ne_bytes(), 4_096 + 4).unwrap();
        assert!(shared.take_kick(0));
        assert!(!shared.take_kick(0));
        assert_eq!(shared.request(0), Some(0));
    }
}
