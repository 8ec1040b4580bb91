//! Bulk frames: what a path for them carries ([`BulkPath`](crate::outgoing::BulkPath)).
//!
//! A bulk frame is longer than the MTU, and has no more than [`BULK_PAYLOAD`] bytes of data, or
//! [`BULK_EAGER`] of an eager message.
//! Several replies in a row may go as a *run*: one head, that of the first, and the data of all. So
//! a sender hands hundreds of kilobytes to the kernel at once, straight from the message. At the
//! other end [`Run`] makes frames of them again, while they come.

use super::write::overhead;
use super::{FLAG_ASK, FLAG_CRC, FrameType, HEADER};
use crate::config::BLOCK_FRAMES;

/// Bytes of data in a bulk frame; the last one of a message has fewer.
pub const BULK_PAYLOAD: usize = 32 << 10;
/// Bytes of an eager message in a bulk frame: one of 32 KiB, and what a layer above puts before it.
pub const BULK_EAGER: usize = BULK_PAYLOAD + 64;
/// Bytes of the longest bulk frame.
pub const BULK_FRAME: usize = BULK_EAGER + overhead(FrameType::Medium, true);
/// The most replies in a run: those to one request.
pub const RUN_FRAMES: u32 = BLOCK_FRAMES;
/// Bytes of the longest run.
pub const RUN: usize = RUN_HEAD + RUN_FRAMES as usize * BULK_PAYLOAD;
/// Where the length of the body stands in a header.
const LENGTH_AT: usize = HEADER - 2;
/// Bytes of a reply before its data.
pub const RUN_HEAD: usize = overhead(FrameType::Reply, false);

/// A run whose data are still to come.
#[derive(Debug)]
pub struct Run {
    head: [u8; RUN_HEAD],
    left: usize,
}

impl Run {
    /// The run of this head and so many bytes after it; `None` if there is no such run.
    #[must_use]
    pub fn new(head: &[u8; RUN_HEAD], data: usize) -> Option<Self> {
        let is_reply = head[0] == FrameType::Reply as u8 && head[1] & FLAG_CRC == 0;
        let is_long = BULK_PAYLOAD < data && data <= RUN - RUN_HEAD;
        (is_reply && is_long).then_some(Self { head: *head, left: data })
    }

    /// Bytes of data in the next frame; 0 at the end.
    #[must_use]
    pub fn next(&self) -> usize {
        self.left.min(BULK_PAYLOAD)
    }

    /// Bytes of data in all frames that are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left
    }

    /// The head of the next frame, which comes before its data.
    #[must_use]
    pub fn head(&self) -> [u8; RUN_HEAD] {
        let (length, mut head) = (self.next(), self.head);
        head[LENGTH_AT..HEADER]
            .copy_from_slice(&((RUN_HEAD - HEADER + length) as u16).to_be_bytes());
        if self.left > length {
            // What it asks for, it asks for after the last one.
            head[1] &= !FLAG_ASK;
        }
        head
    }

    /// Of so many bytes of data that come next, those of whole frames.
    #[must_use]
    pub fn whole(&self, bytes: usize) -> usize {
        if bytes < self.left { bytes / BULK_PAYLOAD * BULK_PAYLOAD } else { self.left }
    }

    /// Goes on to the frame after so many [whole](Self::whole) ones.
    pub fn advance(&mut self, bytes: usize) {
        self.left -= bytes;
        let frames = bytes.div_ceil(BULK_PAYLOAD) as u32;
        let index = &mut self.head[RUN_HEAD - size_of::<u32>()..];
        let next = index.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        index.copy_from_slice(&next.wrapping_add(frames).to_be_bytes());
    }
}
