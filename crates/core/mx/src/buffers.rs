//! Where messages come from and go to.
//!
//! The engine copies no message on its way out and buffers none that it has a receive for: it reads
//! a message piece by piece into frames, and writes frames into the place that the receive named.
//! Who owns that memory is the caller's choice.

use alloc::vec::Vec;

use bytes::Bytes;

/// A message that is being sent. It may be read many times, until its request is complete, and
/// eager messages until all of it is acknowledged, unless the memory is lent.
pub trait Source {
    /// Bytes of the message.
    fn length(&self) -> u64;

    /// Fills `into` with the bytes from `offset` on. The engine stays below [`Source::length`].
    fn read(&self, offset: u64, into: &mut [u8]);

    /// The bytes from `offset` on that lie in one place, `most` of them at most. Less than that, or
    /// none, where they do not; then the engine reads them.
    fn piece(&self, offset: u64, most: usize) -> &[u8] {
        let _ = (offset, most);
        &[]
    }

    /// Whether it may be read only until its request is complete. Then the request of an eager
    /// message waits for the acknowledgement, or for [`keep`](Self::keep).
    fn is_lent(&self) -> bool {
        false
    }

    /// Takes a copy of what is lent.
    fn keep(&mut self) {}
}

/// The place for a message.
pub trait Sink {
    /// How many bytes fit.
    fn capacity(&self) -> u64;

    /// Takes the bytes at `offset`. The engine stays below [`Sink::capacity`], and does not always
    /// write in order. It writes no byte twice, but what it has received into a
    /// [`piece`](Self::piece), or could not [read](crate::endpoint::Endpoint::next_read) to the
    /// end.
    fn write(&mut self, offset: u64, from: &[u8]);

    /// The place of the bytes from `offset` on, `most` of them at most, as far as it lies in one
    /// piece: the engine may receive into it. None, or less, where it does not; then it writes.
    fn piece(&mut self, offset: u64, most: usize) -> &mut [u8] {
        let _ = (offset, most);
        &mut []
    }
}

impl Source for Bytes {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        let from = offset as usize;
        into.copy_from_slice(&self[from..from + into.len()]);
    }

    fn piece(&self, offset: u64, most: usize) -> &[u8] {
        let rest = &self[offset as usize..];
        &rest[..most.min(rest.len())]
    }
}

/// A message in segments, one after the other.
impl Source for Vec<Bytes> {
    fn length(&self) -> u64 {
        self.iter().map(Source::length).sum()
    }

    fn read(&self, mut offset: u64, mut into: &mut [u8]) {
        for segment in self {
            if into.is_empty() {
                return;
            }
            if offset >= segment.length() {
                offset -= segment.length();
                continue;
            }
            let count = (segment.length() - offset).min(into.len() as u64) as usize;
            let (here, rest) = into.split_at_mut(count);
            segment.read(offset, here);
            into = rest;
            offset = 0;
        }
    }

    fn piece(&self, mut offset: u64, most: usize) -> &[u8] {
        for segment in self {
            match offset.checked_sub(segment.length()) {
                Some(left) => offset = left,
                None => return segment.piece(offset, most),
            }
        }
        &[]
    }
}

/// Bytes in memory that is allocated once, when the receive is posted.
impl Sink for Vec<u8> {
    fn capacity(&self) -> u64 {
        self.len() as u64
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        let at = offset as usize;
        self[at..at + from.len()].copy_from_slice(from);
    }

    fn piece(&mut self, offset: u64, most: usize) -> &mut [u8] {
        let rest = &mut self[offset as usize..];
        let most = most.min(rest.len());
        &mut rest[..most]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn segments_are_read_as_one_message() {
        let segments: Vec<Bytes> = [&b"ab"[..], b"", b"cdef", b"g"].map(Bytes::from).into();
        assert_eq!(segments.length(), 7);
        for from in 0..7 {
            for to in from..=7 {
                let mut piece = vec![0; to - from];
                segments.read(from as u64, &mut piece);
                assert_eq!(piece, b"abcdefg"[from..to]);
            }
        }
        let pieces = [(0, 9, "ab"), (1, 1, "b"), (2, 3, "cde"), (6, 9, "g"), (7, 1, "")];
        for (offset, most, piece) in pieces {
            assert_eq!(segments.piece(offset, most), piece.as_bytes(), "from {offset}");
        }
    }
}
