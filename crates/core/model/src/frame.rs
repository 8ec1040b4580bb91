//! Frames, in little memory: most of what programs send is filler.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// A frame without FCS. Of a run of one byte at its end, only the length is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    kept: Box<[u8]>,
    length: u32,
    /// What stands behind the bytes that are kept.
    filler: u8,
}

/// Bytes at the beginning of a frame that are always kept: those of headers.
const HEAD: usize = 64;
/// A run is left out by so many bytes at a time.
const PIECE: usize = 32;

impl Frame {
    /// A frame of these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self::padded(bytes, 0)
    }

    /// A frame that begins with these bytes and has at least `length`; what pads it means nothing.
    pub fn padded(bytes: &[u8], length: usize) -> Self {
        let run = run(bytes);
        let filler = bytes.last().copied().filter(|_| run > 0).unwrap_or_default();
        let length = bytes.len().max(length) as u32;
        Self { kept: bytes[..bytes.len() - run].into(), length, filler }
    }

    /// Bytes of it.
    pub fn length(&self) -> usize {
        self.length as usize
    }

    /// The bytes of its Ethernet header and of what follows that directly.
    pub fn head(&self) -> &[u8] {
        &self.kept
    }

    /// All bytes, which may need `place`.
    pub fn whole<'a>(&'a self, place: &'a mut Vec<u8>) -> &'a [u8] {
        let length = self.length();
        if self.kept.len() == length {
            return &self.kept;
        }
        if place.len() < length {
            place.resize(length, 0);
        }
        self.read(&mut place[..length]);
        &place[..length]
    }

    /// Copies all bytes to a place of that length.
    pub fn read(&self, place: &mut [u8]) {
        let (kept, run) = place.split_at_mut(self.kept.len());
        kept.copy_from_slice(&self.kept);
        run.fill(self.filler);
    }
}

/// How many bytes at the end need not be kept.
fn run(bytes: &[u8]) -> usize {
    let Some((&last, rest)) = bytes.get(HEAD..).and_then(<[u8]>::split_last) else { return 0 };
    PIECE * rest.rchunks_exact(PIECE).take_while(|piece| **piece == [last; PIECE]).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_all_its_bytes_and_keeps_few() {
        for length in [0, 1, HEAD, HEAD + PIECE, 1_514, 9_014] {
            for same in [0, 20, PIECE, 1_000, length] {
                let bytes: Vec<u8> =
                    (0..length).map(|at| if at + same < length { at as u8 } else { 7 }).collect();
                let frame = Frame::new(&bytes);
                assert_eq!(frame.whole(&mut Vec::new()), bytes, "{length}, {same}");
                assert_eq!(frame.length(), length);
                let most = length.saturating_sub(same).max(HEAD) + PIECE;
                assert!(frame.head().len() <= most, "{length}, {same}");
            }
        }
        let short = Frame::padded(&[1, 2], 4);
        assert_eq!((short.whole(&mut Vec::new()), short.head()), (&[1, 2, 0, 0][..], &[1, 2][..]));
    }
}
