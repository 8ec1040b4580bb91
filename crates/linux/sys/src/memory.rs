//! SharedMemory that the driver shares with the device: a file without a name, mapped by both.
//!
//! The device may write anywhere in it at any moment, whatever the rules say. So nothing here
//! hands out a reference to plain bytes: ring words are atomics, and packets are copied in and out.
//! What was copied out is the process's own and stays as it was when it was checked.
//!
//! The file is sealed: neither side can shrink it, so touching the mapping never faults.

use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate,
    memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::page;

/// What one processor core takes from another at a time, in bytes.
pub const CACHE_LINE: usize = 64;

/// The file system of files without a name (`linux/magic.h`).
const TMPFS: u64 = 0x0102_1994;

/// Mapped memory of a sealed file; unmapped when the last part of it is dropped.
pub struct SharedMemory {
    start: NonNull<u8>,
    bytes: usize,
    file: OwnedFd,
}

// SAFETY: the mapping belongs to the process, not to a thread, and every access through a shared
// reference is an atomic or a copy into memory that the caller holds alone.
// JUSTIFICATION: a driver is made by one thread and may be used by another; a pointer field takes
// that ability away.
unsafe impl Send for SharedMemory {}

// SAFETY: as above. Two threads that copy into the same packet buffer would mix up their bytes, as
// the device can at any time; no reference to those bytes exists that this could break.
// JUSTIFICATION: the parts of a driver share one mapping by `Arc`.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// At least `bytes` bytes of zeros, in whole pages.
    pub fn new(bytes: usize) -> io::Result<Arc<Self>> {
        let page = page::size();
        let bytes = bytes.max(1).next_multiple_of(page);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create(c"earmark-driver", flags)?;
        ftruncate(&file, bytes as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Self::map(file, bytes)
    }

    /// The memory that another process has made by [`SharedMemory::new`] and passed on.
    ///
    /// # Errors
    /// If it is of another length, could shrink, or is not plain memory of the kernel.
    pub fn adopt(file: OwnedFd, bytes: usize) -> io::Result<Arc<Self>> {
        // Pages of other file systems may take as long as their owner likes, or run out.
        let plain = fstatfs(&file)?.f_type as u64 == TMPFS;
        let sealed = fcntl_get_seals(&file)?.contains(SealFlags::SHRINK);
        if !plain || !sealed || u64::try_from(fstat(&file)?.st_size) != Ok(bytes as u64) {
            return Err(rustix::io::Errno::INVAL.into());
        }
        Self::map(file, bytes)
    }

    fn map(file: OwnedFd, bytes: usize) -> io::Result<Arc<Self>> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // Populated now, so that no packet waits for a page.
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses an address that nothing else uses.
        // JUSTIFICATION: memory shared with another process is a mapping, and there is no safe one.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, &file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Arc::new(Self { start, bytes, file }))
    }

    /// The file, to be passed to the device.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// How long it is, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The `length` bytes from `at` on.
    ///
    /// # Panics
    /// If they are not all in it. The driver lays out its own memory, so that is a defect.
    fn part(&self, at: usize, length: usize) -> NonNull<u8> {
        let end = at.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.bytes), "{length} bytes at {at} are outside");
        // SAFETY: `at` is within the mapping, or one past its end.
        // JUSTIFICATION: the mapping is only known by its address.
        unsafe { self.start.add(at) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping, and what refers to it holds an `Arc` of this.
        // JUSTIFICATION: nothing else unmaps it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A word of a ring. All bit patterns are values, and all accesses are atomic.
pub trait Word {}
impl Word for AtomicU16 {}
impl Word for AtomicU32 {}
impl Word for AtomicU64 {}
impl Word for std::sync::atomic::AtomicU8 {}

/// Words of a memory, which they keep mapped.
pub struct Words<W> {
    start: NonNull<W>,
    count: usize,
    _memory: Arc<SharedMemory>,
    _words: PhantomData<W>,
}

// SAFETY: words are atomics, and the memory under them may be sent.
// JUSTIFICATION: a pointer field takes that ability away.
unsafe impl<W: Word + Sync> Send for Words<W> {}

impl<W: Word> Words<W> {
    /// `count` words from byte `at` of `memory` on.
    ///
    /// # Panics
    /// If they are outside of it, or not aligned.
    pub fn new(memory: &Arc<SharedMemory>, at: usize, count: usize) -> Self {
        let start = memory.part(at, count * size_of::<W>()).cast::<W>();
        assert!(start.is_aligned(), "words at {at} are not aligned");
        Self { start, count, _memory: Arc::clone(memory), _words: PhantomData }
    }
}

impl<W: Word> Deref for Words<W> {
    type Target = [W];

    fn deref(&self) -> &[W] {
        // SAFETY: `new` has checked range and alignment, the memory stays mapped as long as `self`,
        // and a `Word` may change under a shared reference.
        // JUSTIFICATION: the mapping is only known by its address.
        unsafe { NonNull::slice_from_raw_parts(self.start, self.count).as_ref() }
    }
}

/// Packet buffers of one size, side by side.
pub struct Buffers {
    start: NonNull<u8>,
    count: usize,
    each: usize,
    _memory: Arc<SharedMemory>,
}

// SAFETY: as `SharedMemory`.
// JUSTIFICATION: a pointer field takes that ability away.
unsafe impl Send for Buffers {}

impl Buffers {
    /// `count` buffers of `each` bytes, from byte `at` of `memory` on.
    ///
    /// # Panics
    /// If they are outside of it.
    pub fn new(memory: &Arc<SharedMemory>, at: usize, count: usize, each: usize) -> Self {
        let start = memory.part(at, count * each);
        Self { start, count, each, _memory: Arc::clone(memory) }
    }

    /// Where `length` bytes of buffer `number` are.
    ///
    /// # Panics
    /// If the buffer does not have them: callers check what the device says.
    fn bytes(&self, number: u16, at: usize, length: usize) -> NonNull<u8> {
        let number = usize::from(number);
        assert!(number < self.count && at <= self.each && length <= self.each - at);
        // SAFETY: buffer, offset and length have just been checked, and `new` has checked that all
        // buffers are in the mapping.
        // JUSTIFICATION: the mapping is only known by its address.
        unsafe { self.start.add(number * self.each + at) }
    }

    /// Copies `bytes` to `at` in buffer `number`.
    pub fn write(&self, number: u16, at: usize, bytes: &[u8]) {
        let to = self.bytes(number, at, bytes.len()).as_ptr();
        // SAFETY: both have that many bytes, and a slice of this process never overlaps the
        // mapping, of which no slices are made.
        // JUSTIFICATION: a slice of memory that another process writes to must not exist.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Copies from `at` in buffer `number` until `bytes` is full.
    pub fn read(&self, number: u16, at: usize, bytes: &mut [u8]) {
        let from = self.bytes(number, at, bytes.len()).as_ptr();
        // SAFETY: as in `write`.
        // JUSTIFICATION: as in `write`.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
    }
}

/// Hands out the bytes of a memory that is yet to be made, from its start on.
#[derive(Default)]
pub struct Layout {
    end: usize,
}

impl Layout {
    /// The next `bytes` bytes, on cache lines of their own: where they begin.
    pub fn take(&mut self, bytes: usize) -> usize {
        let at = self.end;
        self.end = (at + bytes).next_multiple_of(CACHE_LINE);
        at
    }

    /// How many bytes were handed out.
    pub fn bytes(&self) -> usize {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn memory_is_zero_and_cannot_shrink() {
        let memory = SharedMemory::new(10).unwrap();
        assert_eq!(memory.bytes(), page::size());
        assert!(ftruncate(memory.file(), 0).is_err());
        let words = Words::<AtomicU64>::new(&memory, 0, memory.bytes() / 8);
        assert!(words.iter().all(|word| word.load(Relaxed) == 0));
    }

    #[test]
    fn only_memory_that_cannot_shrink_is_adopted() {
        let made = SharedMemory::new(10).unwrap();
        let bytes = made.bytes();
        let file = || made.file().try_clone_to_owned().unwrap();
        SharedMemory::adopt(file(), bytes).unwrap();
        assert!(SharedMemory::adopt(file(), bytes + 1).is_err());
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let unsealed = memfd_create(c"test", flags).unwrap();
        ftruncate(&unsealed, bytes as u64).unwrap();
        assert!(SharedMemory::adopt(unsealed, bytes).is_err());
        let (pipe, _) = rustix::pipe::pipe().unwrap();
        assert!(SharedMemory::adopt(pipe, bytes).is_err());
    }

    #[test]
    fn buffers_keep_apart() {
        let memory = SharedMemory::new(4096).unwrap();
        let buffers = Buffers::new(&memory, 64, 3, 10);
        buffers.write(1, 0, &[7; 10]);
        let mut bytes = [1; 30];
        for number in 0..3 {
            buffers.read(number, 0, &mut bytes[usize::from(number) * 10..][..10]);
        }
        assert_eq!(bytes, [[0; 10], [7; 10], [0; 10]].concat()[..]);
    }

    #[test]
    #[should_panic(expected = "outside")]
    fn words_outside_are_a_defect() {
        let memory = SharedMemory::new(4096).unwrap();
        let _ = Words::<AtomicU16>::new(&memory, memory.bytes() - 2, 2);
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn bytes_beyond_a_buffer_are_a_defect() {
        let memory = SharedMemory::new(4096).unwrap();
        Buffers::new(&memory, 0, 2, 10).write(0, 5, &[0; 6]);
    }

    #[test]
    fn parts_have_their_own_lines() {
        let mut layout = Layout::default();
        assert_eq!([layout.take(1), layout.take(64), layout.take(65)], [0, 64, 128]);
        assert_eq!(layout.bytes(), 256);
    }
}
