//! Messages in memory of a C program, which lends it for the time of a request: what the MPI
//! provider and the C API have in common.
//!
//! The maker of a [`Segment`] vouches that the memory stays lent. From then on it is safe to use.
//! [`Segments`] are the memory of one message, [`Payload`] is a message that is sent.

mod copies;

use std::sync::Arc;

use mx::buffers::{Sink, Source};

pub use copies::{Copied, Copies};

/// A part of memory that is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    at: *mut u8,
    length: usize,
}

// SAFETY: the memory may be used by any thread while it is lent, as its maker promised.
// JUSTIFICATION: the engine, which holds it, is driven by several threads in turns.
unsafe impl Send for Segment {}

impl Segment {
    /// Memory of 0 bytes.
    pub const NOTHING: Self = Self { at: std::ptr::null_mut(), length: 0 };

    /// So many bytes at an address.
    ///
    /// # Safety
    /// They stay there, and no one writes to them or, if they are written to, looks at them, as
    /// long as this segment or a copy of it is used.
    #[must_use]
    pub const unsafe fn new(at: *mut u8, length: usize) -> Self {
        Self { at, length }
    }

    /// Where it begins.
    #[must_use]
    pub const fn start(&self) -> *mut u8 {
        self.at
    }

    /// How many bytes it has.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// What is left after so many bytes.
    #[must_use]
    pub const fn after(&self, skip: usize) -> Self {
        let skip = if skip < self.length { skip } else { self.length };
        Self { at: self.at.wrapping_add(skip), length: self.length - skip }
    }
}

/// The memory of one message in parts, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Segments<P> {
    parts: P,
    length: usize,
}

impl<P: AsRef<[Segment]>> Segments<P> {
    /// The memory of these parts.
    pub fn new(parts: P) -> Self {
        let add = |sum: usize, part: &Segment| sum.saturating_add(part.length());
        let length = parts.as_ref().iter().fold(0, add);
        Self { parts, length }
    }

    /// Whether there can be such memory: no part of it is at NULL, and there are addresses for all
    /// of it.
    pub fn is_possible(&self) -> bool {
        let is_possible = |part: &Segment| part.length == 0 || !part.at.is_null();
        self.parts().iter().all(is_possible) && self.length <= isize::MAX as usize
    }

    /// Bytes in all parts.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// The parts, in the order of the message.
    pub fn parts(&self) -> &[Segment] {
        self.parts.as_ref()
    }

    /// Fills `into` with what lies at `offset`.
    ///
    /// # Panics
    /// If the message is shorter.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        each(self.parts(), offset, into.len(), |at, place, length| {
            let place = into[place..place + length].as_mut_ptr();
            // SAFETY: `length` bytes at `at` are lent, and `place` has room for as many; a frame
            // never lies in memory that is lent.
            // JUSTIFICATION: messages are sent from where they lie.
            unsafe { std::ptr::copy_nonoverlapping(at, place, length) };
        });
    }

    /// The bytes from `offset` on that lie in one part, `most` at most.
    pub fn piece(&self, offset: usize, most: usize) -> &[u8] {
        let (at, length) = in_one_part(self.parts(), offset, most);
        // SAFETY: the bytes are lent, and no one writes to them as long as they are; they are used
        // for no longer than this message.
        // JUSTIFICATION: messages are sent from where they lie.
        unsafe { std::slice::from_raw_parts(at, length) }
    }

    /// The place of the bytes from `offset` on that lie in one part, `most` at most.
    pub fn place(&mut self, offset: usize, most: usize) -> &mut [u8] {
        let (at, length) = in_one_part(self.parts(), offset, most);
        // SAFETY: the bytes are lent, and no one reads them as long as they are; they are used
        // for no longer than this message, which is borrowed meanwhile.
        // JUSTIFICATION: messages are received where they are wanted.
        unsafe { std::slice::from_raw_parts_mut(at, length) }
    }

    /// Writes `from` to what lies at `offset`.
    ///
    /// # Panics
    /// If the message is shorter.
    pub fn write(&self, offset: usize, from: &[u8]) {
        each(self.parts(), offset, from.len(), |at, place, length| {
            let place = from[place..place + length].as_ptr();
            // SAFETY: as in `read`, in the other direction.
            // JUSTIFICATION: messages are received where they are wanted.
            unsafe { std::ptr::copy_nonoverlapping(place, at, length) };
        });
    }
}

/// The bytes of a message that is sent. Up to `SHORT` bytes are kept in place.
#[derive(Debug)]
pub enum Payload<P, const SHORT: usize> {
    /// A copy without memory of its own: the bytes, and how many there are.
    Short([u8; SHORT], usize),
    /// A copy in memory of its own.
    Copied(Copied),
    /// The program's memory, until the send has ended.
    Lent(Segments<P>),
}

impl<P: AsRef<[Segment]>, const SHORT: usize> Payload<P, SHORT> {
    /// Copies a message into memory of `copies`.
    pub fn copied(from: &Segments<P>, copies: &Arc<Copies>) -> Self {
        let length = from.length();
        if length <= SHORT {
            let mut bytes = [0; SHORT];
            from.read(0, &mut bytes[..length]);
            return Self::Short(bytes, length);
        }
        Self::headed(&[], from, copies)
    }

    /// Copies a message behind a `head`.
    pub fn headed(head: &[u8], from: &Segments<P>, copies: &Arc<Copies>) -> Self {
        let length = head.len() + from.length();
        Self::Copied(Copied::new(copies, length, |bytes| {
            bytes.extend_from_slice(head);
            while bytes.len() < length {
                bytes.extend_from_slice(from.piece(bytes.len() - head.len(), length));
            }
        }))
    }

    /// Copies what is lent.
    pub fn keep(&mut self, copies: &Arc<Copies>) {
        if let Self::Lent(segments) = self {
            *self = Self::copied(segments, copies);
        }
    }
}

impl<P: AsRef<[Segment]>, const SHORT: usize> Source for Payload<P, SHORT> {
    fn length(&self) -> u64 {
        let length = match self {
            Self::Short(_, length) => *length,
            Self::Copied(bytes) => bytes.len(),
            Self::Lent(segments) => segments.length(),
        };
        length as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        let offset = offset as usize;
        let bytes: &[u8] = match self {
            Self::Short(bytes, _) => bytes,
            Self::Copied(bytes) => bytes,
            Self::Lent(segments) => return segments.read(offset, into),
        };
        into.copy_from_slice(&bytes[offset..offset + into.len()]);
    }

    fn piece(&self, offset: u64, most: usize) -> &[u8] {
        let offset = offset as usize;
        let bytes: &[u8] = match self {
            Self::Short(bytes, length) => &bytes[..*length],
            Self::Copied(bytes) => bytes,
            Self::Lent(segments) => return segments.piece(offset, most),
        };
        let rest = bytes.get(offset..).unwrap_or_default();
        &rest[..most.min(rest.len())]
    }
}

impl<P: AsRef<[Segment]>> Sink for Segments<P> {
    fn capacity(&self) -> u64 {
        self.length as u64
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        Self::write(self, offset as usize, from);
    }

    fn piece(&mut self, offset: u64, most: usize) -> &mut [u8] {
        self.place(offset as usize, most)
    }
}

/// Where the bytes from `offset` on lie in one part, and how many of them, `most` at most.
fn in_one_part(parts: &[Segment], mut offset: usize, most: usize) -> (*mut u8, usize) {
    for part in parts {
        match part.length.checked_sub(offset) {
            Some(left @ 1..) => return (part.at.wrapping_add(offset), left.min(most)),
            _ => offset -= part.length,
        }
    }
    (std::ptr::NonNull::dangling().as_ptr(), 0)
}

/// Calls `act` for each part of a range: with its address, where it is in the range, and its
/// length.
fn each(
    parts: &[Segment],
    offset: usize,
    length: usize,
    mut act: impl FnMut(*mut u8, usize, usize),
) {
    let (mut skip, mut done) = (offset, 0);
    for part in parts {
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
    assert!(done == length && skip == 0, "beyond the memory of a message");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lent(bytes: &mut [u8]) -> Segment {
        // SAFETY: tests use it while the bytes are there.
        // JUSTIFICATION: the tests are of what is lent.
        unsafe { Segment::new(bytes.as_mut_ptr(), bytes.len()) }
    }

    #[test]
    fn parts_are_one_message() {
        let (mut a, mut b, mut c) = (*b"ab", [0_u8; 0], *b"cdefg");
        let message = Segments::new([lent(&mut a), lent(&mut b), lent(&mut c)]);
        for from in 0..=7 {
            for to in from..=7 {
                let mut piece = vec![0; to - from];
                message.read(from, &mut piece);
                assert_eq!(piece, b"abcdefg"[from..to]);
            }
        }
        let pieces = [(0, 9, "ab"), (1, 1, "b"), (2, 3, "cde"), (6, 9, "g"), (7, 1, "")];
        for (offset, most, bytes) in pieces {
            assert_eq!(message.piece(offset, most), bytes.as_bytes(), "from {offset}");
        }
        message.write(1, b"XYZ");
        assert_eq!((a, c), (*b"aX", *b"YZefg"));
    }

    #[test]
    fn no_message_has_no_bytes() {
        Segments::new([]).read(0, &mut []);
        Segments::new([Segment::NOTHING]).write(0, &[]);
    }

    #[test]
    #[should_panic(expected = "beyond the memory")]
    fn range_beyond_the_message_panics_before_it_is_a_fault() {
        let mut bytes = *b"abc";
        Segments::new([lent(&mut bytes)]).read(2, &mut [0; 2]);
    }

    #[test]
    fn what_is_left_is_never_less_than_nothing() {
        let mut bytes = *b"abc";
        let whole = lent(&mut bytes);
        assert_eq!((whole.after(2).length(), whole.after(9).length()), (1, 0));
        assert_eq!(whole.after(1).start(), whole.start().wrapping_add(1));
    }
}
