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

/// So many segments a message may have.
pub(crate) const MOST: usize = 4;

/// A part of the user's memory.
#[derive(Clone, Copy, Debug)]
struct Segment {
    at: *mut u8,
    length: usize,
}

const NOTHING: Segment = Segment { at: std::ptr::null_mut(), length: 0 };

/// The memory of one message, in one or several parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments {
    parts: [Segment; MOST],
    count: usize,
    total: usize,
}

// SAFETY: the memory may be used by any thread while the request lasts: that is the contract above.
// JUSTIFICATION: the engine, which holds it, is driven by several threads in turns.
unsafe impl Send for Segments {}

impl Segments {
    /// No memory at all.
    pub(crate) const NONE: Self = Self { parts: [NOTHING; MOST], count: 0, total: 0 };

    /// Memory in one piece.
    ///
    /// # Safety
    /// The contract above holds for `length` bytes at `at`, until the request has ended that this
    /// memory, or a copy of it, is used for.
    pub(crate) const unsafe fn one(at: *mut u8, length: usize) -> Self {
        let mut parts = [NOTHING; MOST];
        parts[0] = Segment { at, length };
        Self { parts, count: 1, total: length }
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
            *part = Segment { at: iovec.iov_base.cast(), length: iovec.iov_len };
            segments.total += iovec.iov_len;
        }
        Some(segments)
    }

    /// What is left of memory in one piece after so many bytes.
    pub(crate) const fn rest(&self, skip: usize) -> Self {
        let Segment { at, length } = self.parts[0];
        let skip = if skip < length { skip } else { length };
        let mut parts = [NOTHING; MOST];
        parts[0] = Segment { at: at.wrapping_add(skip), length: length - skip };
        Self { parts, count: 1, total: length - skip }
    }

    /// Bytes in all parts.
    pub(crate) const fn length(&self) -> usize {
        self.total
    }

    /// Where the first part begins.
    pub(crate) const fn start(&self) -> *mut u8 {
        self.parts[0].at
    }

    /// Fills `into` with what lies at `offset`.
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        self.each(offset, into.len(), |at, place, length| {
            let place = into[place..place + length].as_mut_ptr();
            // SAFETY: `length` bytes at `at` are the user's, who leaves them alone meanwhile, and
            // `place` has room for as many; memory of the user never overlaps that of a frame.
            // JUSTIFICATION: messages are sent from where they lie.
            unsafe { std::ptr::copy_nonoverlapping(at, place, length) };
        });
    }

    /// Writes `from` to what lies at `offset`.
    pub(crate) fn write(&self, offset: usize, from: &[u8]) {
        self.each(offset, from.len(), |at, place, length| {
            let place = from[place..place + length].as_ptr();
            // SAFETY: as in `read`, in the other direction.
            // JUSTIFICATION: messages are received where they are wanted.
            unsafe { std::ptr::copy_nonoverlapping(place, at, length) };
        });
    }

    /// Calls `act` for each part of a range: with its address, where it is in the range, and its
    /// length.
    fn each(&self, offset: usize, length: usize, mut act: impl FnMut(*mut u8, usize, usize)) {
        assert!(offset + length <= self.total, "beyond the memory of a message");
        let (mut skip, mut done) = (offset, 0);
        for part in &self.parts[..self.count] {
            if skip >= part.length {
                skip -= part.length;
                continue;
            }
            let here = (part.length - skip).min(length - done);
            if here > 0 {
                act(part.at.wrapping_add(skip), done, here);
            }
            done += here;
            skip = 0;
            if done == length {
                return;
            }
        }
    }
}

/// The user's memory of one message, from the arguments of a call.
macro_rules! lent {
    ($how:ident, $start:expr, $length:expr) => {{
        let (start, length) = ($start, $length);
        // SAFETY: the caller of this provider keeps to the contract of `memory.rs`.
        // JUSTIFICATION: C passes memory by its address.
        unsafe { $crate::memory::Segments::$how(start, length) }
    }};
}

pub(crate) use lent;

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
    fn parts_are_one_message() {
        let (mut a, mut b, mut c) = (*b"ab", [0_u8; 0], *b"cdefg");
        let iovecs = list(&mut [&mut a, &mut b, &mut c]);
        let segments = lent!(of, iovecs.as_ptr(), iovecs.len()).unwrap();
        assert_eq!(segments.length(), 7);
        for from in 0..=7 {
            for to in from..=7 {
                let mut piece = vec![0; to - from];
                segments.read(from, &mut piece);
                assert_eq!(piece, b"abcdefg"[from..to]);
            }
        }
        segments.write(1, b"XYZ");
        assert_eq!((a, c), (*b"aX", *b"YZefg"));
    }

    #[test]
    fn more_parts_than_there_is_room_for_are_refused() {
        let mut parts = [[0_u8; 1]; MOST + 1];
        let mut parts: Vec<&mut [u8]> = parts.iter_mut().map(|part| &mut part[..]).collect();
        let iovecs = list(&mut parts);
        assert!(lent!(of, iovecs.as_ptr(), MOST + 1).is_none());
        assert_eq!(lent!(of, iovecs.as_ptr(), MOST).unwrap().length(), MOST);
        assert_eq!(lent!(of, std::ptr::null(), 0).unwrap().length(), 0);
    }
}
