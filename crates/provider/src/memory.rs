//! Memory of the user that messages are read from and written to.
//!
//! # The contract
//!
//! Between a call that sends or receives and the completion that ends it, the memory that the call
//! named belongs to the provider: the user neither frees it, nor, when sending, changes it, nor,
//! when receiving, looks at it (fi_msg(3), "the buffer may not be accessed until the operation
//! completes"). The provider touches it in no other time:
//!
//! - **Sends.** MX reads an eager message again when frames of it were lost, also after the send
//!   has ended. So what is short enough to be eager is copied when it is sent, and only longer
//!   messages are read from the user's memory, which MX does until their receiver has told that it
//!   has all.
//! - **Receives.** MX writes into the memory until the receive ends, and gives the place back with
//!   its end; a receive that is cancelled ends before the cancellation is told.
//! - **Close.** An endpoint is closed by stopping its thread and dropping the engine, before
//!   `fi_close` returns.

use libc::iovec;
use mx_io::memory::{self, Segment};

/// So many segments a message may have.
pub(crate) const MOST: usize = 4;

/// The memory of one message, in one or several parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments {
    parts: [Segment; MOST],
    count: usize,
    total: usize,
}

impl Segments {
    /// No memory at all.
    pub(crate) const NONE: Self = Self { parts: [Segment::NOTHING; MOST], count: 0, total: 0 };

    /// Memory in one piece.
    ///
    /// # Safety
    /// The contract above holds for `length` bytes at `at`, until the request has ended that this
    /// memory, or a copy of it, is used for.
    pub(crate) const unsafe fn one(at: *mut u8, length: usize) -> Self {
        // SAFETY: it is lent, as the caller says.
        // JUSTIFICATION: C passes memory by its address.
        Self::of_one(unsafe { Segment::new(at, length) })
    }

    const fn of_one(segment: Segment) -> Self {
        let mut parts = [Segment::NOTHING; MOST];
        parts[0] = segment;
        Self { parts, count: 1, total: segment.length() }
    }

    /// Memory that a list describes; `None` if it is too long.
    ///
    /// # Safety
    /// The list has `count` entries, and the contract above holds for each of them, as in `one`.
    pub(crate) unsafe fn of(list: *const iovec, count: usize) -> Option<Self> {
        if count > MOST {
            return None;
        }
        let mut segments = Self { count, ..Self::NONE };
        for (index, part) in segments.parts[..count].iter_mut().enumerate() {
            // SAFETY: `index` is below `count`, the length of the list.
            // JUSTIFICATION: C passes lists by their address.
            let at = unsafe { list.add(index) };
            // SAFETY: as above.
            // JUSTIFICATION: as above.
            let iovec = unsafe { at.read() };
            // SAFETY: it is lent, as the caller says.
            // JUSTIFICATION: C passes memory by its address.
            *part = unsafe { Segment::new(iovec.iov_base.cast(), iovec.iov_len) };
            segments.total += iovec.iov_len;
        }
        Some(segments)
    }

    /// What is left of memory in one piece after so many bytes.
    pub(crate) const fn rest(&self, skip: usize) -> Self {
        Self::of_one(self.parts[0].after(skip))
    }

    /// Bytes in all parts.
    pub(crate) const fn length(&self) -> usize {
        self.total
    }

    /// Where the first part begins.
    pub(crate) const fn start(&self) -> *mut u8 {
        self.parts[0].start()
    }

    /// Fills `into` with what lies at `offset`.
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        memory::read(&self.parts[..self.count], offset, into);
    }

    /// Writes `from` to what lies at `offset`.
    pub(crate) fn write(&self, offset: usize, from: &[u8]) {
        memory::write(&self.parts[..self.count], offset, from);
    }
}

/// The user's memory of one message, from the arguments of a call.
macro_rules! borrow_iov {
    ($how:ident, $start:expr, $length:expr) => {{
        let (start, length) = ($start, $length);
        // SAFETY: the caller of this provider keeps to the contract of `memory.rs`.
        // JUSTIFICATION: C passes memory by its address.
        unsafe { $crate::memory::Segments::$how(start, length) }
    }};
}

pub(crate) use borrow_iov;

#[cfg(test)]
mod tests {
    use super::*;

    fn list(parts: &mut [&mut [u8]]) -> Vec<iovec> {
        let iovec = |part: &mut &mut [u8]| iovec {
            iov_base: part.as_mut_ptr().cast(),
            iov_len: part.len(),
        };
        parts.iter_mut().map(iovec).collect()
    }

    #[test]
    fn list_is_one_message() {
        let (mut a, mut b) = (*b"ab", *b"cdefg");
        let iovecs = list(&mut [&mut a, &mut b]);
        let segments = borrow_iov!(of, iovecs.as_ptr(), iovecs.len()).unwrap();
        let mut whole = [0; 7];
        segments.read(0, &mut whole);
        assert_eq!((&whole, segments.length()), (b"abcdefg", 7));
        segments.write(1, b"XYZ");
        assert_eq!((a, b), (*b"aX", *b"YZefg"));
    }

    #[test]
    fn more_parts_than_there_is_room_for_are_refused() {
        let mut parts = [[0_u8; 1]; MOST + 1];
        let mut parts: Vec<&mut [u8]> = parts.iter_mut().map(|part| &mut part[..]).collect();
        let iovecs = list(&mut parts);
        assert!(borrow_iov!(of, iovecs.as_ptr(), MOST + 1).is_none());
        assert_eq!(borrow_iov!(of, iovecs.as_ptr(), MOST).unwrap().length(), MOST);
        assert_eq!(borrow_iov!(of, std::ptr::null(), 0).unwrap().length(), 0);
    }
}
