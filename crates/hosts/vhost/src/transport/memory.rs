//! The memory of a guest, mapped here and shared with it while it runs.
//!
//! The guest writes to it at any time, so nothing here makes a reference into it: bytes are copied
//! out before they are looked at, and words are atomics. Every address comes from the guest and is
//! checked against its regions before it is used; no sum overflows.
//!
//! A file that is not plain memory or on a local disk is refused: a page of a file system in user
//! space may take its owner's time to arrive, and the data plane would wait for it.

#[cfg(target_arch = "x86_64")]
use std::arch::{
    asm,
    x86_64::{_MM_HINT_T0, _mm_prefetch},
};
use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::message::Region;
use super::reaper::{Foreign, ForeignFd, Reaper};
use super::sigbus::Watched;
use super::signal::is_memory;
use sys::memory::CACHE_LINE;
use sys::page;

/// Why memory cannot be had, or an address is none of the guest's.
#[expect(missing_docs, reason = "the messages say it")]
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("a memory table of {0} regions came with {1} file descriptors")]
    Descriptors(usize, usize),
    #[error("memory region {0} is empty or runs past the end of the address space")]
    Bounds(usize),
    #[error("memory region {0} is longer than its file")]
    Truncated(usize),
    #[error(
        "memory region {0} is no file of memory; give the guest memory from memfd, /dev/shm or \
         hugetlbfs"
    )]
    NoMemory(usize),
    #[error("map memory region {0}: {1}")]
    Map(usize, io::Error),
    #[error("{1} bytes at {0:#x} are not in guest memory")]
    Address(u64, u64),
    #[error("{0:#x} is not aligned to {1} bytes")]
    Alignment(u64, usize),
}

/// What is done with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is written, so no other processor may keep it.
    Write,
}

#[derive(Debug)]
struct Mapping {
    region: Region,
    base: NonNull<u8>,
    map: NonNull<u8>,
    map_length: usize,
    watched: Option<Watched>,
}

// SAFETY: the pointers are to a shared mapping that lives as long as this, and all accesses go
// through copies of raw bytes and atomics. A port moves to the thread of the data plane.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(number: usize, region: Region, fd: &ForeignFd) -> Result<Self, MemoryError> {
        let failed = |cause: io::Error| MemoryError::Map(number, cause);
        let bounds = MemoryError::Bounds(number);
        let end_of = |start: u64| start.checked_add(region.size);
        let (Some(_), Some(_), Some(end)) =
            (end_of(region.guest_address), end_of(region.user_address), end_of(region.file_offset))
        else {
            return Err(bounds);
        };
        let size = usize::try_from(region.size).ok().filter(|&size| size > 0).ok_or(bounds)?;
        // First of all: what is asked of another file may have to wait for its answer.
        if !is_memory(fd.as_fd()) {
            return Err(MemoryError::NoMemory(number));
        }
        let stat = rustix::fs::fstat(fd).map_err(|errno| failed(errno.into()))?;
        if stat.st_size < 0 || (stat.st_size as u64) < end {
            return Err(MemoryError::Truncated(number));
        }
        // A mapping begins at a page of its file; on hugetlbfs, pages are as long as blocks.
        let page = u64::try_from(stat.st_blksize).unwrap_or(1).max(page::size() as u64);
        let before = (region.file_offset % page) as usize;
        let offset = region.file_offset - before as u64;
        let length = (size + before).next_multiple_of(page as usize);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses. Shared memory is what the
        // protocol consists of.
        let map = unsafe {
            mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, fd.as_fd(), offset)
        };
        let map = map.map_err(|errno| failed(errno.into()))?.cast::<u8>();
        let map = NonNull::new(map).ok_or_else(|| failed(io::ErrorKind::OutOfMemory.into()))?;
        // SAFETY: `before` is less than the length of the mapping, which begins at `map`.
        let base = unsafe { map.add(before) };
        let mut mapping = Self { region, base, map, map_length: length, watched: None };
        mapping.watched = Some(Watched::new(map.as_ptr() as usize, length).map_err(failed)?);
        Ok(mapping)
    }

    /// The pointer to `length` bytes at `offset`, both checked.
    #[inline]
    fn at(&self, offset: u64, length: u64) -> Option<NonNull<u8>> {
        if offset > self.region.size || length > self.region.size - offset {
            return None;
        }
        // SAFETY: the region has `size` bytes from `base` on, and `offset` is at most that.
        Some(unsafe { self.base.add(offset as usize) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        drop(self.watched.take());
        // SAFETY: it is this mapping's own, and holders of a pointer into it hold the mapping.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), self.map_length) };
    }
}

/// A guest's memory.
#[derive(Clone, Debug)]
pub struct Memory {
    mappings: Arc<Foreign<Vec<Mapping>>>,
}

impl Memory {
    /// Maps the regions of a memory table, each from its file; `reaper` unmaps them.
    pub fn map(
        regions: &[Region],
        fds: &[ForeignFd],
        reaper: &Reaper,
    ) -> Result<Self, MemoryError> {
        if regions.len() != fds.len() {
            return Err(MemoryError::Descriptors(regions.len(), fds.len()));
        }
        let pairs = regions.iter().zip(fds).enumerate();
        let mappings = pairs.map(|(number, (region, fd))| Mapping::new(number, *region, fd));
        let mappings = mappings.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { mappings: Arc::new(Foreign::new(mappings, reaper)) })
    }

    /// Whether the guest has taken memory away that was accessed since.
    pub fn is_poisoned(&self) -> bool {
        self.mappings
            .iter()
            .filter_map(|mapping| mapping.watched.as_ref())
            .any(Watched::is_poisoned)
    }

    /// A part of a ring, for good: `count` words at an address of the frontend.
    pub fn area<W>(
        &self,
        user: u64,
        count: usize,
        alignment: usize,
    ) -> Result<Area<W>, MemoryError> {
        let alignment = alignment.max(align_of::<W>());
        let length = count.saturating_mul(size_of::<W>()) as u64;
        let found = self.mappings.iter().find_map(|mapping| {
            let offset = user.checked_sub(mapping.region.user_address)?;
            mapping.at(offset, length)
        });
        let missing = MemoryError::Address(user, length);
        let start = found.ok_or(missing)?;
        // The frontend's addresses say nothing of ours.
        let is_aligned = |address: u64| address.is_multiple_of(alignment as u64);
        if !is_aligned(user) || !is_aligned(start.as_ptr() as u64) {
            return Err(MemoryError::Alignment(user, alignment));
        }
        Ok(Area { _mappings: Arc::clone(&self.mappings), start: start.cast(), count })
    }

    /// Copies bytes at an address of the guest.
    #[inline]
    pub fn read(&self, guest: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        let from = self.locate(guest, bytes.len() as u64)?.as_ptr();
        // SAFETY: `locate` checked that as many bytes are mapped there, and `bytes` is this
        // process's alone. The guest may write meanwhile; then the copy is of no matter what.
        unsafe { ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    /// Copies bytes to an address of the guest.
    #[inline]
    pub fn write(&self, guest: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.write_parts(guest, [bytes])
    }

    /// Copies parts to an address of the guest, one behind the other.
    #[inline]
    pub fn write_parts<const N: usize>(
        &self,
        guest: u64,
        parts: [&[u8]; N],
    ) -> Result<(), MemoryError> {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        let start = self.locate(guest, length as u64)?;
        let mut written = 0;
        for part in parts {
            // SAFETY: `locate` checked that `length` bytes are mapped, of which these are.
            let to = unsafe { start.add(written) }.as_ptr();
            // SAFETY: as in `read`; nothing in this process refers to guest memory.
            unsafe { ptr::copy_nonoverlapping(part.as_ptr(), to, part.len()) };
            written += part.len();
        }
        Ok(())
    }

    /// Begins to fetch bytes at an address of the guest, if there are any: they will be accessed
    /// soon, and are in the cache of another processor.
    #[inline]
    pub fn prefetch(&self, guest: u64, length: usize, access: Access) {
        #[cfg(target_arch = "x86_64")]
        if let Ok(start) = self.locate(guest, length as u64) {
            for line in 0..length.div_ceil(CACHE_LINE) {
                let bytes = start.as_ptr().wrapping_add(line * CACHE_LINE);
                match access {
                    // SAFETY: this reads nothing, and no address makes it fault.
                    Access::Read => unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.cast()) },
                    // SAFETY: as above. Processors that do not know it do nothing. There is no
                    // intrinsic that is this instruction whatever the target's features.
                    Access::Write => unsafe {
                        asm!("prefetchw [{}]", in(reg) bytes, options(nostack, preserves_flags));
                    },
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (guest, length, access);
    }

    #[inline]
    fn locate(&self, guest: u64, length: u64) -> Result<NonNull<u8>, MemoryError> {
        for mapping in self.mappings.iter() {
            if let Some(offset) = guest.checked_sub(mapping.region.guest_address)
                && let Some(start) = mapping.at(offset, length)
            {
                return Ok(start);
            }
        }
        Err(MemoryError::Address(guest, length))
    }
}

/// Words of guest memory, atomics of one size, whose bounds were checked once. It keeps the memory
/// mapped.
#[derive(Debug)]
pub struct Area<W> {
    _mappings: Arc<Foreign<Vec<Mapping>>>,
    start: NonNull<W>,
    count: usize,
}

// SAFETY: a pointer into a `Mapping`, which may be sent, and kept by the field beside it.
unsafe impl<W: Send> Send for Area<W> {}

impl<W> Area<W> {
    #[inline]
    fn word(&self, index: usize) -> &W {
        assert!(index < self.count, "word {index} is outside an area of {}", self.count);
        // SAFETY: `Memory::area` checked that `count` words are mapped.
        let word = unsafe { self.start.add(index) };
        // SAFETY: it also checked the alignment. The word is an atomic: guest memory is only
        // accessed with those and copies, as a plain load could be torn or done twice.
        unsafe { word.as_ref() }
    }
}

macro_rules! words {
    ($($atomic:ty, $word:ty;)*) => {$(
        impl Area<$atomic> {
            /// Reads a word, in the byte order of the guest's devices (little endian).
            ///
            /// # Panics
            /// If it is not inside the area: a defect, since the index is ours.
            #[inline]
            pub fn load(&self, index: usize, order: Ordering) -> $word {
                <$word>::from_le(self.word(index).load(order))
            }

            /// Writes a word.
            ///
            /// # Panics
            /// As for reading.
            #[inline]
            pub fn store(&self, index: usize, value: $word, order: Ordering) {
                self.word(index).store(value.to_le(), order);
            }
        }
    )*};
}

words! {
    AtomicU16, u16;
    AtomicU32, u32;
    AtomicU64, u64;
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::transport::reaper::tests::foreign;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::os::fd::OwnedFd;

    /// Maps regions from files of our own.
    pub(in super::super) fn mapped<const N: usize>(
        regions: &[Region],
        files: [OwnedFd; N],
    ) -> Result<Memory, MemoryError> {
        Memory::map(regions, &files.map(foreign), &Reaper::start().unwrap())
    }

    pub(in super::super) fn file(size: u64) -> OwnedFd {
        let fd = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, size).unwrap();
        fd
    }

    fn region(size: u64) -> Region {
        Region { guest_address: 0x1000, size, user_address: 0x7000_0000, file_offset: 0 }
    }

    #[test]
    fn what_is_written_is_read_and_shared() {
        let fd = file(0x4000);
        let memory = mapped(&[region(0x4000)], [fd.try_clone().unwrap()]).unwrap();
        let again = mapped(&[region(0x4000)], [fd]).unwrap();
        memory.write(0x1FFE, b"abcd").unwrap();
        let mut bytes = [0; 4];
        again.read(0x1FFE, &mut bytes).unwrap();
        assert_eq!(&bytes, b"abcd");
        let area = again.area::<AtomicU32>(0x7000_0FFC, 2, 4).unwrap();
        assert_eq!(area.load(0, Ordering::Relaxed).to_le_bytes(), [0, 0, b'a', b'b']);
        let area = again.area::<AtomicU16>(0x7000_0FFC, 4, 4).unwrap();
        area.store(2, 0x0102, Ordering::Release);
        memory.read(0x2000, &mut bytes).unwrap();
        assert_eq!(bytes, [2, 1, 0, 0]);
    }

    #[test]
    fn addresses_outside_are_refused() {
        let memory = mapped(&[region(0x1000)], [file(0x1000)]).unwrap();
        let mut byte = [0; 1];
        assert!(memory.read(0x1FFF, &mut byte).is_ok());
        for address in [0, 0xFFF, 0x2000, u64::MAX, u64::MAX - 0xFFF] {
            assert!(matches!(memory.read(address, &mut byte), Err(MemoryError::Address { .. })));
            assert!(memory.write(address, &byte).is_err());
            assert!(memory.area::<u8>(address, 1, 1).is_err());
        }
        assert!(memory.read(0x1001, &mut [0; 0x1000]).is_err());
        assert!(memory.area::<u8>(0x7000_0000, 0x1001, 1).is_err());
        assert!(memory.area::<u8>(0x7000_0000, usize::MAX, 1).is_err());
        assert!(matches!(
            memory.area::<AtomicU16>(0x7000_0001, 1, 1),
            Err(MemoryError::Alignment(_, 2))
        ));
    }

    #[test]
    fn regions_that_cannot_be_are_refused() {
        let map = |region, size| mapped(&[region], [file(size)]).map(|_| ());
        assert!(matches!(map(region(0), 0), Err(MemoryError::Bounds(0))));
        assert!(matches!(map(region(0x2000), 0x1000), Err(MemoryError::Truncated(0))));
        let wrapping = Region { guest_address: u64::MAX, ..region(0x1000) };
        assert!(matches!(map(wrapping, 0x1000), Err(MemoryError::Bounds(0))));
        let beyond = Region { file_offset: u64::MAX - 0xFFF, ..region(0x1000) };
        assert!(matches!(map(beyond, 0x1000), Err(MemoryError::Bounds(0))));
        let none = mapped(&[region(0x1000)], []);
        assert!(matches!(none, Err(MemoryError::Descriptors(1, 0))));
    }

    #[test]
    fn region_may_begin_in_the_middle_of_a_page() {
        let fd = file(0x3000);
        let whole = mapped(&[region(0x3000)], [fd.try_clone().unwrap()]).unwrap();
        let part = Region { file_offset: 0x1234, ..region(0x1000) };
        let part = mapped(&[part], [fd]).unwrap();
        part.write(0x1000, b"x").unwrap();
        let mut byte = [0];
        whole.read(0x2234, &mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }
}
