//! Records from one process to another: a ring of cache lines in memory that both map.
//!
//! ```text
//!   0      records lost     written by the producer
//!   8      records void     written by the producer: of those before it, none may refer to memory
//!   64     lines taken      written by the consumer
//!   128    wake             how to wake the consumer; set by it, taken back by the producer
//!   192    lines: a word of 8 bytes, then the record, in as many lines as it takes
//! ```
//!
//! The word says in which line it is, counted from 1 modulo 2^32, in its upper half, and what and
//! how long the record is in its lower. So the consumer looks at that line alone, and a small
//! record takes one cache line from core to core. Before a record is published, the line behind it
//! is made one that has no word: otherwise bytes of an earlier record might look like one. A record
//! that would not fit before the end of the ring is at its beginning, and a skip stands for it.
//!
//! Either side may be hostile: each knows by itself where it is and how large everything is, and
//! copies records. What the other writes is a number to be checked.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use ::mx::wire::BULK_FRAME;
use sys::memory::{Buffers, CACHE_LINE, SharedMemory, Words};

const LINES_AT: usize = 3 * CACHE_LINE;
const WORD: usize = size_of::<u64>();
const WORDS: usize = CACHE_LINE / WORD;
pub(super) const ROOM: usize = BULK_FRAME;
/// The fewest lines of a ring: room for two of the longest records.
pub(super) const MIN_LINES: u32 = 2048;
/// The most cache lines of a ring.
pub(super) const MAX_LINES: u32 = 1 << 16;

pub(super) const fn is_possible(lines: u32) -> bool {
    lines.is_power_of_two() && MIN_LINES <= lines && lines <= MAX_LINES
}

const fn lines_of(bytes: usize) -> u64 {
    (WORD + bytes).div_ceil(CACHE_LINE) as u64
}

/// What a record is; its number is bits 30 and 31 of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    Frame = 0,
    /// The announcement of a message, and where that lies in the memory of the producer.
    Reference = 1,
}

const SKIP: u32 = 2;
const KIND: u32 = 30;

/// How one wakes who does not look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    Bell,
    /// By a [call](super::calls): it may look at others.
    Call,
}

const BELL: u64 = 1;
const CALL: u64 = 2;

struct Shared {
    lines: u32,
    control: Words<AtomicU64>,
    words: Words<AtomicU64>,
    bytes: Buffers,
    memory: Arc<SharedMemory>,
}

impl Shared {
    fn new(memory: Arc<SharedMemory>, lines: u32) -> Self {
        let bytes = lines as usize * CACHE_LINE;
        Self {
            lines,
            control: Words::new(&memory, 0, 3 * WORDS),
            words: Words::new(&memory, LINES_AT, bytes / WORD),
            bytes: Buffers::new(&memory, LINES_AT, 1, bytes),
            memory,
        }
    }

    const fn size(lines: u32) -> usize {
        LINES_AT + lines as usize * CACHE_LINE
    }

    fn lost(&self) -> &AtomicU64 {
        &self.control[0]
    }

    fn void(&self) -> &AtomicU64 {
        &self.control[1]
    }

    fn taken(&self) -> &AtomicU64 {
        &self.control[WORDS]
    }

    fn wake(&self) -> &AtomicU64 {
        &self.control[2 * WORDS]
    }

    /// Where line `number` is in the ring.
    fn place(&self, number: u64) -> usize {
        (number & u64::from(self.lines - 1)) as usize
    }

    fn word(&self, number: u64) -> &AtomicU64 {
        &self.words[self.place(number) * WORDS]
    }

    fn write(&self, number: u64, at: usize, bytes: &[u8]) {
        self.bytes.write(0, self.place(number) * CACHE_LINE + WORD + at, bytes);
    }

    /// How many lines there are from `number` on to the end of the ring.
    fn to_end(&self, number: u64) -> u64 {
        u64::from(self.lines) - (number & u64::from(self.lines - 1))
    }
}

/// What the word of line `number` is, with the number of a kind and a length.
fn word(number: u64, kind: u32, length: usize) -> u64 {
    (number + 1) << 32 | u64::from(kind << KIND) | length as u64
}

pub(super) struct Producer {
    ring: Shared,
    /// Lines so far.
    next: u64,
    /// Those taken out, when this was last looked at.
    taken: u64,
}

impl Producer {
    /// A new ring of so many lines, a [possible](is_possible) number.
    pub(super) fn new(lines: u32) -> io::Result<Self> {
        let memory = SharedMemory::new(Shared::size(lines))?;
        Ok(Self { ring: Shared::new(memory, lines), next: 0, taken: 0 })
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.ring.memory.file()
    }

    /// Adds a record of these parts, [`ROOM`] bytes at most; `false` if there is no room for it
    /// now.
    pub(super) fn push(&mut self, kind: RecordKind, parts: &[&[u8]]) -> bool {
        let length = parts.iter().map(|part| part.len()).sum();
        let lines = lines_of(length);
        let to_end = self.ring.to_end(self.next);
        let skipped = if lines > to_end { to_end } else { 0 };
        // One more, which will have no word.
        if !self.has_room(skipped + lines + 1) {
            return false;
        }
        let first = self.next + skipped;
        let end = first + lines;
        let mut at = 0;
        for part in parts {
            self.ring.write(first, at, part);
            at += part.len();
        }
        self.ring.word(end).store(end << 32, Ordering::Relaxed);
        self.ring.word(first).store(word(first, kind as u32, length), Ordering::Release);
        if skipped > 0 {
            self.ring.word(self.next).store(word(self.next, SKIP, 0), Ordering::Release);
        }
        self.next = end;
        true
    }

    fn has_room(&mut self, lines: u64) -> bool {
        let all = u64::from(self.ring.lines);
        if self.next - self.taken + lines <= all {
            return true;
        }
        let taken = self.ring.taken().load(Ordering::Acquire);
        // Otherwise it claims to have taken what never was there, or has been taken long ago.
        let waiting = self.next.checked_sub(taken).filter(|waiting| *waiting <= all);
        if waiting.is_some() {
            self.taken = taken;
        }
        waiting.is_some_and(|waiting| waiting + lines <= all)
    }

    /// How the consumer has to be woken, which the caller has to do.
    pub(super) fn wake(&self) -> Option<Wake> {
        // The record is visible before this is looked at; the consumer does it the other way round.
        fence(Ordering::SeqCst);
        let wake = self.ring.wake();
        if wake.load(Ordering::Relaxed) == 0 {
            return None;
        }
        match wake.swap(0, Ordering::Relaxed) {
            0 => None,
            CALL => Some(Wake::Call),
            _ => Some(Wake::Bell),
        }
    }

    pub(super) fn lose(&mut self) {
        // No other process writes it.
        let lost = self.ring.lost();
        lost.store(lost.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The memory that records so far refer to will be used for something else: what the consumer
    /// reads there from now on is not what was meant.
    pub(super) fn void(&self) {
        self.ring.void().store(self.next, Ordering::Relaxed);
        // Before the memory changes.
        fence(Ordering::SeqCst);
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.void();
    }
}

pub(super) struct Consumer {
    ring: Shared,
    /// Lines so far.
    next: u64,
    /// Records that were lost, when this was last looked at.
    lost: u64,
    /// It has asked the producer to ring, and not heard of it.
    waits: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    Record(RecordKind, usize),
    /// What cannot be: the producer is out of its mind.
    Nonsense,
}

impl Consumer {
    /// The other side of a ring that claims to have so many lines, a [possible](is_possible)
    /// number.
    pub(super) fn adopt(file: OwnedFd, lines: u32) -> io::Result<Self> {
        let bytes = Shared::size(lines).next_multiple_of(sys::page::size());
        let memory = SharedMemory::adopt(file, bytes)?;
        Ok(Self { ring: Shared::new(memory, lines), next: 0, lost: 0, waits: false })
    }

    pub(super) fn pop(&mut self, room: &mut [u8]) -> Next {
        let Some(mut low) = self.low() else { return Next::Nothing };
        if low >> KIND == SKIP {
            self.next += self.ring.to_end(self.next);
            let Some(after) = self.low() else { return Next::Nonsense };
            low = after;
        }
        let (kind, length) = (low >> KIND, (low & ((1 << KIND) - 1)) as usize);
        let kind = match kind {
            0 => RecordKind::Frame,
            1 => RecordKind::Reference,
            _ => return Next::Nonsense,
        };
        if length > ROOM || lines_of(length) > self.ring.to_end(self.next) {
            return Next::Nonsense;
        }
        let at = self.ring.place(self.next) * CACHE_LINE + WORD;
        self.ring.bytes.read(0, at, &mut room[..length]);
        self.next += lines_of(length);
        self.ring.taken().store(self.next, Ordering::Release);
        Next::Record(kind, length)
    }

    /// The lower half of the next word, if there is one.
    fn low(&self) -> Option<u32> {
        let word = self.ring.word(self.next).load(Ordering::Acquire);
        ((word >> 32) as u32 == (self.next + 1) as u32).then_some(word as u32)
    }

    pub(super) const fn end(&self) -> u64 {
        self.next
    }

    /// Whether the memory that the record which ends there refers to was still what was meant when
    /// it was read.
    pub(super) fn was_valid(&self, end: u64) -> bool {
        // After the memory was read.
        fence(Ordering::SeqCst);
        end > self.ring.void().load(Ordering::Relaxed)
    }

    /// Asks the producer to wake this side; `true` if there is a record already.
    pub(super) fn arm(&mut self, wake: Wake) -> bool {
        self.waits = wake == Wake::Bell;
        let wake = if self.waits { BELL } else { CALL };
        self.ring.wake().store(wake, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.is_ready()
    }

    /// Whether the producer has rung, as far as is known; reported once.
    pub(super) fn was_rung(&mut self) -> bool {
        let rung = self.waits && self.ring.wake().load(Ordering::Relaxed) == 0;
        self.waits &= !rung;
        rung
    }

    pub(super) fn is_ready(&self) -> bool {
        self.low().is_some()
    }

    /// Records that were lost since this was last asked, modulo 2^32: a hostile producer may write
    /// any number, and the sum of what all of them write must not overflow.
    pub(super) fn lost(&mut self) -> u64 {
        let lost = self.ring.lost().load(Ordering::Relaxed);
        let since = lost.wrapping_sub(self.lost) as u32;
        self.lost = lost;
        since.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: u32 = MIN_LINES;

    fn ring() -> (Producer, Consumer) {
        let producer = Producer::new(LINES).unwrap();
        let file = producer.file().try_clone_to_owned().unwrap();
        (producer, Consumer::adopt(file, LINES).unwrap())
    }

    fn push(producer: &mut Producer, bytes: &[u8]) -> bool {
        let (first, second) = bytes.split_at(bytes.len() / 3);
        producer.push(RecordKind::Frame, &[first, second])
    }

    #[test]
    fn records_come_in_order_and_each_once_also_when_numbers_wrap() {
        for first in [0, (1 << 32) - 6, (1 << 32) - u64::from(LINES / 2)] {
            let (mut producer, mut consumer) = ring();
            (producer.next, producer.taken, consumer.next) = (first, first, first);
            let mut room = vec![0; ROOM];
            for round in 0..200_u8 {
                // What an earlier record leaves must not look like the word of a later one.
                let lengths = [0, 56, 57, usize::from(round) * 100, ROOM - usize::from(round)];
                let lengths = &lengths[..1 + usize::from(round) % 5];
                for length in lengths {
                    assert!(push(&mut producer, &vec![round; *length]));
                }
                for length in lengths {
                    assert!(consumer.is_ready());
                    assert_eq!(consumer.pop(&mut room), Next::Record(RecordKind::Frame, *length));
                    assert!(room[..*length].iter().all(|byte| *byte == round));
                }
                assert_eq!(consumer.pop(&mut room), Next::Nothing);
            }
        }
    }

    #[test]
    fn bytes_of_a_record_are_no_word() {
        let (mut producer, mut consumer) = ring();
        let mut room = vec![0; ROOM];
        // Line after line of what will be the word of that line the next time round.
        let mut liar = vec![0; 20 * CACHE_LINE - WORD];
        for line in 1..20 {
            let at = line as usize * CACHE_LINE - WORD;
            liar[at..at + WORD].copy_from_slice(&word(u64::from(LINES) + line, 0, 9).to_ne_bytes());
        }
        assert!(push(&mut producer, &liar));
        while producer.next < u64::from(LINES) {
            let left = ((u64::from(LINES) - producer.next) as usize * CACHE_LINE - WORD).min(ROOM);
            consumer.pop(&mut room);
            assert!(push(&mut producer, &vec![1; left]));
        }
        while consumer.pop(&mut room) != Next::Nothing {}
        for _ in 0..19 {
            assert!(push(&mut producer, &[7; 5]));
            assert_eq!(consumer.pop(&mut room), Next::Record(RecordKind::Frame, 5));
            assert_eq!(consumer.pop(&mut room), Next::Nothing);
        }
    }
}
