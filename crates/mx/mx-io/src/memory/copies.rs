//! The memory of messages that are copied when they are sent.
//!
//! It is used again by the endpoint that has it. An allocator gives the end of its heap back to the
//! system whenever much of it is free, which is after each burst of messages; of the next burst
//! each page is then one that the kernel has to find and to clear first, which costs as much as to
//! send it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Copies of so many bytes are pooled. Shorter ones are no burden to an allocator, longer ones are
/// not eager.
const POOLED: std::ops::RangeInclusive<usize> = 1 << 10..=64 << 10;
/// How many sizes there are: powers of two.
const CLASSES: usize = (POOLED.end().ilog2() - POOLED.start().ilog2() + 1) as usize;
/// So many bytes are kept at most: as many as 64 messages of 32 KiB, the window of many programs.
const MAX_SPARE: usize = 2 << 20;
/// With so many bytes of copies, an endpoint should not make more.
const MANY: usize = 64 << 20;

/// What an endpoint has copied, and memory for more of it.
#[derive(Debug, Default)]
pub struct Copies {
    bytes: AtomicUsize,
    spare: Mutex<Spare>,
}

#[derive(Debug, Default)]
struct Spare {
    of_class: [Vec<Vec<u8>>; CLASSES],
    bytes: usize,
}

/// The class of memory for so many bytes, if it is pooled.
fn class_of(bytes: usize) -> Option<usize> {
    let class = || bytes.next_power_of_two().ilog2() - POOLED.start().ilog2();
    POOLED.contains(&bytes).then(|| class() as usize)
}

impl Copies {
    /// Bytes of copies that there are now.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether further messages should not be copied before some have arrived.
    pub fn are_many(&self) -> bool {
        self.bytes() >= MANY
    }

    fn take(&self, length: usize) -> Vec<u8> {
        let Some(class) = class_of(length) else { return Vec::with_capacity(length) };
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        match spare.of_class[class].pop() {
            Some(memory) => {
                spare.bytes -= memory.capacity();
                memory
            }
            None => Vec::with_capacity(length.next_power_of_two()),
        }
    }

    fn give_back(&self, mut memory: Vec<u8>) {
        let size = memory.capacity();
        let Some(class) = class_of(size).filter(|_| size.is_power_of_two()) else { return };
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.bytes + size <= MAX_SPARE {
            memory.clear();
            spare.bytes += size;
            spare.of_class[class].push(memory);
        }
    }
}

/// A copy of a message.
#[derive(Debug)]
pub struct Copied {
    bytes: Vec<u8>,
    home: Arc<Copies>,
}

impl Copied {
    pub(super) fn new(home: &Arc<Copies>, length: usize, fill: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = home.take(length);
        fill(&mut bytes);
        home.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        Self { bytes, home: Arc::clone(home) }
    }
}

impl std::ops::Deref for Copied {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.home.bytes.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        self.home.give_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(home: &Arc<Copies>, length: usize) -> Copied {
        Copied::new(home, length, |bytes| bytes.resize(length, 1))
    }

    fn spare(home: &Copies) -> usize {
        let spare = home.spare.lock().unwrap();
        let all: usize = spare.of_class.iter().flatten().map(Vec::capacity).sum();
        assert_eq!(spare.bytes, all);
        all
    }

    #[test]
    fn memory_is_used_again_for_what_fits_into_it() {
        let home = Arc::default();
        let first = copy(&home, 16_000);
        let place = first.as_ptr();
        assert_eq!((home.bytes(), spare(&home)), (16_000, 0));
        drop(first);
        assert_eq!((home.bytes(), spare(&home)), (0, 16 << 10));
        let others = [8_192, 16_385].map(|length| copy(&home, length));
        assert!(others.iter().all(|other| other.as_ptr() != place));
        let again = copy(&home, 8_193);
        assert_eq!((again.as_ptr(), &again[..], spare(&home)), (place, &[1; 8_193][..], 0));
    }

    #[test]
    fn little_is_kept_and_what_is_short_or_long_is_not() {
        let home = Arc::default();
        drop([0, 1, 1_023, (64 << 10) + 1, 1 << 20].map(|length| copy(&home, length)));
        assert_eq!(spare(&home), 0);
        let many: Vec<_> = (0..100).map(|_| copy(&home, 32 << 10)).collect();
        drop(many);
        assert_eq!((home.bytes(), spare(&home)), (0, MAX_SPARE));
        drop(copy(&home, 1_024));
        assert_eq!(spare(&home), MAX_SPARE);
    }
}
