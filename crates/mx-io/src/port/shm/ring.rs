//! Frames from one process to another: a ring of slots in memory that both map.
//!
//! ```text
//!   0      frames lost      written by the producer
//!   64     slots taken      written by the consumer
//!   128    armed            set by the consumer, taken back by the producer
//!   192    slots: a word of 8 bytes, then the frame
//! ```
//!
//! The word of a slot says which frame it has, counted from 1 modulo 2^32, in its upper half, and
//! how long that is in its lower. So the consumer looks at the slot alone, and a small frame takes
//! one cache line from core to core.
//!
//! Either side may be hostile: each knows by itself where it is and how large everything is, and
//! copies frames. What the other writes is a number to be checked.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use sys::memory::{Buffers, Memory, Words};
use sys::page;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Where the slots begin, in bytes.
const SLOTS_AT: usize = 3 * LINE;
/// Bytes of the word that a slot begins with.
const WORD: usize = size_of::<u64>();
/// Words of 4 bytes in a cache line.
const WORDS: usize = LINE / size_of::<u32>();

/// How large a ring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Slots, a power of two.
    pub(super) slots: u32,
    /// Bytes of the largest frame.
    pub(super) room: u32,
}

impl Shape {
    /// Bytes of a slot.
    fn stride(self) -> usize {
        (WORD + self.room as usize).next_multiple_of(LINE)
    }

    /// Bytes of the memory.
    fn bytes(self) -> usize {
        let bytes = SLOTS_AT + self.slots as usize * self.stride();
        bytes.next_multiple_of(page::size())
    }
}

/// What both sides map.
struct Shared {
    shape: Shape,
    control: Words<AtomicU32>,
    slots: Words<AtomicU64>,
    frames: Buffers,
    memory: Arc<Memory>,
}

impl Shared {
    fn new(memory: Arc<Memory>, shape: Shape) -> Self {
        let (slots, stride) = (shape.slots as usize, shape.stride());
        Self {
            shape,
            control: Words::new(&memory, 0, 3 * WORDS),
            slots: Words::new(&memory, SLOTS_AT, slots * stride / WORD),
            frames: Buffers::new(&memory, SLOTS_AT, slots, stride),
            memory,
        }
    }

    fn lost(&self) -> &AtomicU32 {
        &self.control[0]
    }

    fn taken(&self) -> &AtomicU32 {
        &self.control[WORDS]
    }

    fn armed(&self) -> &AtomicU32 {
        &self.control[2 * WORDS]
    }

    /// The slot of frame `number`, and its word.
    fn slot(&self, number: u32) -> (u16, &AtomicU64) {
        let slot = number % self.shape.slots;
        (slot as u16, &self.slots[slot as usize * self.shape.stride() / WORD])
    }
}

/// The side that fills the ring.
pub(super) struct Producer {
    ring: Shared,
    /// Frames so far.
    next: u32,
    /// Those taken out, when this was last looked at.
    taken: u32,
}

impl Producer {
    /// A new ring.
    pub(super) fn new(shape: Shape) -> io::Result<Self> {
        let memory = Memory::new(shape.bytes())?;
        Ok(Self { ring: Shared::new(memory, shape), next: 0, taken: 0 })
    }

    /// What the consumer has to map.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.ring.memory.file()
    }

    /// Adds a frame, which has room; `false` if no slot is free.
    pub(super) fn push(&mut self, frame: &[u8]) -> bool {
        if !self.has_room() {
            return false;
        }
        let (slot, word) = self.ring.slot(self.next);
        self.ring.frames.write(slot, WORD, frame);
        self.next = self.next.wrapping_add(1);
        word.store(u64::from(self.next) << 32 | frame.len() as u64, Ordering::Release);
        true
    }

    fn has_room(&mut self) -> bool {
        let slots = self.ring.shape.slots;
        if self.next.wrapping_sub(self.taken) < slots {
            return true;
        }
        let taken = self.ring.taken().load(Ordering::Acquire);
        let waiting = self.next.wrapping_sub(taken);
        if waiting <= slots {
            // Otherwise it claims to have taken what never was there.
            self.taken = taken;
        }
        waiting < slots
    }

    /// Whether the consumer sleeps; whoever asks has to wake it.
    pub(super) fn wants_bell(&self) -> bool {
        // The frame is visible before this is looked at; the consumer does it the other way round.
        fence(Ordering::SeqCst);
        let armed = self.ring.armed();
        armed.load(Ordering::Relaxed) != 0 && armed.swap(0, Ordering::Relaxed) != 0
    }

    /// Counts a frame that the consumer will not get.
    pub(super) fn lose(&mut self) {
        // Nobody else is to write it.
        let lost = self.ring.lost();
        lost.store(lost.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// The side that empties the ring.
pub(super) struct Consumer {
    ring: Shared,
    /// Frames so far.
    next: u32,
    /// Frames that were lost, when this was last looked at.
    lost: u32,
    /// It has asked the producer to ring, and not heard of it.
    waits: bool,
}

/// What is in the next slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing yet.
    Nothing,
    /// A frame of so many bytes.
    Frame(usize),
    /// A frame that does not fit into a slot: the producer is out of its mind.
    Nonsense,
}

impl Consumer {
    /// The other side of a ring that claims to have this shape.
    pub(super) fn adopt(file: OwnedFd, shape: Shape) -> io::Result<Self> {
        let memory = Memory::adopt(file, shape.bytes())?;
        Ok(Self { ring: Shared::new(memory, shape), next: 0, lost: 0, waits: false })
    }

    /// Bytes of the largest frame.
    pub(super) fn room(&self) -> usize {
        self.ring.shape.room as usize
    }

    /// Copies the next frame to the start of `frame`, which has [room](Self::room) for it.
    pub(super) fn pop(&mut self, frame: &mut [u8]) -> Next {
        let (slot, word) = self.ring.slot(self.next);
        let word = word.load(Ordering::Acquire);
        if (word >> 32) as u32 != self.next.wrapping_add(1) {
            return Next::Nothing;
        }
        let length = word as u32 as usize;
        if length > self.room() {
            return Next::Nonsense;
        }
        self.ring.frames.read(slot, WORD, &mut frame[..length]);
        self.next = self.next.wrapping_add(1);
        self.ring.taken().store(self.next, Ordering::Release);
        Next::Frame(length)
    }

    /// Asks the producer to ring; `true` if there is a frame already.
    pub(super) fn arm(&mut self) -> bool {
        self.waits = true;
        self.ring.armed().store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.is_ready()
    }

    /// Whether the producer has rung, as far as is known; reported once.
    pub(super) fn was_rung(&mut self) -> bool {
        let rung = self.waits && self.ring.armed().load(Ordering::Relaxed) == 0;
        self.waits &= !rung;
        rung
    }

    /// Whether there is a frame.
    pub(super) fn is_ready(&self) -> bool {
        let (_, word) = self.ring.slot(self.next);
        (word.load(Ordering::Acquire) >> 32) as u32 == self.next.wrapping_add(1)
    }

    /// Frames that were lost since this was last asked.
    pub(super) fn lost(&mut self) -> u32 {
        let lost = self.ring.lost().load(Ordering::Relaxed);
        let since = lost.wrapping_sub(self.lost);
        self.lost = lost;
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { slots: 4, room: 600 };

    fn ring() -> (Producer, Consumer) {
        let producer = Producer::new(SHAPE).unwrap();
        let file = producer.file().try_clone_to_owned().unwrap();
        (producer, Consumer::adopt(file, SHAPE).unwrap())
    }

    #[test]
    fn frames_come_in_order_and_each_once_also_when_numbers_wrap() {
        for first in [0, u32::MAX - 5] {
            let (mut producer, mut consumer) = ring();
            (producer.next, producer.taken, consumer.next) = (first, first, first);
            let mut buffer = [0; 600];
            for round in 0..20_u8 {
                let lengths: Vec<_> = (0..=round % 4).map(|more| usize::from(more) * 200).collect();
                for length in &lengths {
                    assert!(producer.push(&vec![round; *length]));
                }
                for length in lengths {
                    assert!(consumer.is_ready());
                    assert_eq!(consumer.pop(&mut buffer), Next::Frame(length));
                    assert!(buffer[..length].iter().all(|byte| *byte == round));
                }
                assert_eq!(consumer.pop(&mut buffer), Next::Nothing);
            }
        }
    }

    #[test]
    fn full_ring_takes_no_more() {
        let (mut producer, mut consumer) = ring();
        assert!((0..4).all(|_| producer.push(&[1; 9])));
        assert!(!producer.push(&[1; 9]));
        producer.lose();
        assert_eq!((consumer.lost(), consumer.lost()), (1, 0));
        assert_eq!(consumer.pop(&mut [0; 600]), Next::Frame(9));
        assert!(producer.push(&[1; 9]) && !producer.push(&[1; 9]));
    }

    #[test]
    fn bell_is_wanted_once_and_only_when_armed() {
        let (mut producer, mut consumer) = ring();
        assert!(!producer.wants_bell());
        assert!(!consumer.arm() && !consumer.was_rung());
        assert!(producer.push(&[1; 9]));
        assert!(producer.wants_bell() && !producer.wants_bell());
        assert!(consumer.was_rung() && !consumer.was_rung());
        assert!(consumer.arm(), "a frame is there");
    }

    #[test]
    fn lies_of_the_other_side_are_harmless() {
        let (mut producer, mut consumer) = ring();
        let mut buffer = [0; 600];
        // A frame that is longer than its slot.
        producer.ring.slot(0).1.store(1 << 32 | 601, Ordering::Release);
        assert_eq!(consumer.pop(&mut buffer), Next::Nonsense);
        // A frame that is not the next one.
        producer.ring.slot(0).1.store(7 << 32 | 9, Ordering::Release);
        assert_eq!(consumer.pop(&mut buffer), Next::Nothing);
        // A consumer that has taken more than there was.
        assert!((0..4).all(|_| producer.push(&[1; 9])));
        for lie in [5, 77, u32::MAX] {
            consumer.ring.taken().store(lie, Ordering::Release);
            assert!(!producer.push(&[1; 9]), "{lie}");
        }
    }

    #[test]
    fn another_shape_than_that_of_the_memory_is_refused() {
        let producer = Producer::new(SHAPE).unwrap();
        let file = || producer.file().try_clone_to_owned().unwrap();
        for shape in [Shape { slots: 1024, ..SHAPE }, Shape { room: 9000, ..SHAPE }] {
            assert!(Consumer::adopt(file(), shape).is_err());
        }
    }
}
